def comparison_sentences(c):
    return []
