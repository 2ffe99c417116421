import pytest

from fusesim.calibrate.cases import Case, Sample
from fusesim.calibrate.journal import Header, Journal
from fusesim.calibrate.record import Row
from fusesim.errors import InputError, MeasurementError

HEADER = Header(
    device="h200-sxm", date="2026-01-01", protocol="as usual", paths=("cuda",), environment={"gpu": "A", "driver": "1"}
)
CASE = Case(kind="empty", probe="floor", suite="fit")
ROW = Row.of(CASE, Sample(median=2e-6, low=1e-6, high=3e-6, repeats=7, sets=5))


@pytest.fixture
def journal(tmp_path):
    journal = Journal.begin(tmp_path / "raw.json.partial", HEADER)
    journal.add(CASE.identity, ROW)
    journal.add_probes({"copy": 1e-3})
    return journal


def test_every_line_is_there_at_once(journal):
    again = Journal.reopen(journal.path)
    assert (again.header, again.rows, again.probes) == (HEADER, {CASE.identity: ROW}, [{"copy": 1e-3}])


def test_a_line_cut_short_is_measured_again(journal):
    text = journal.path.read_text(encoding="utf-8")
    journal.path.write_text(text + '{"case": "other", "row": {"su', encoding="utf-8")
    again = Journal.reopen(journal.path)
    assert set(again.rows) == {CASE.identity}
    again.add("other", ROW)
    assert set(Journal.reopen(journal.path).rows) == {CASE.identity, "other"}


@pytest.mark.parametrize("garbage", ["{}x\n", '{"case": "a", "row": {"suite": 1}}\n', "\x00\n", '{"caze": "a"}\n'])
def test_damage_in_the_middle_is_refused(journal, garbage):
    journal.path.write_text(garbage.join(journal.path.read_text(encoding="utf-8").splitlines(keepends=True)))
    with pytest.raises(MeasurementError, match=r"^raw\.json\.partial: .*; start over with --force$"):
        Journal.reopen(journal.path)


@pytest.mark.parametrize("content", [b"", b"half a header", b"\xff\xfe\n", b"{}\n"])
def test_what_never_was_a_journal_is_refused(journal, content):
    journal.path.write_bytes(content)
    with pytest.raises(MeasurementError, match=r"^raw\.json\.partial: .*start over with --force"):
        Journal.reopen(journal.path)


def test_nothing_to_resume(tmp_path):
    with pytest.raises(InputError, match=r"^there is no run to resume: .*absent.* does not exist$"):
        Journal.reopen(tmp_path / "absent")


def test_another_machine_is_refused(journal):
    journal.check_same({"gpu": "A", "driver": "1"})
    with pytest.raises(MeasurementError, match="was begun with driver 1 and this is driver 2; start over"):
        journal.check_same({"gpu": "A", "driver": "2"})
    with pytest.raises(MeasurementError, match="was begun with gpu A and this is gpu B"):
        journal.check_same({"gpu": "B", "driver": "1"})


def test_discarding(journal):
    journal.discard()
    journal.discard()
    assert not journal.path.exists()


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(MeasurementError, match="^cannot write .*: No such file or directory$"):
        Journal.begin(tmp_path / "absent" / "journal", HEADER)
