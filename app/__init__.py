"""The workshop: a web page on which fusion is learnt by moving sliders."""
