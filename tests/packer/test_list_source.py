from __future__ import annotations

import json
from pathlib import Path

import pytest

from packer.sources.listing import ListSource
from packer.sources.opening import open_source
from readers.errors import SampleError, SourceError
from readers.sample import Sample

_JPEG = b"\xff\xd8\xff\xe0"


def _source(root: Path, name: str, text: str | bytes, **options: object) -> ListSource:
    file = root / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return ListSource(file, **options)  # type: ignore[arg-type]


def _images(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(_JPEG + name.encode())


def _samples(source: ListSource) -> list[Sample]:
    return [source[index] for index in range(len(source))]


def _labels(source: ListSource) -> list[int | None]:
    return [sample.label for sample in _samples(source)]


def test_a_table_gives_names_labels_and_typed_columns(tmp_path: Path) -> None:
    _images(tmp_path, "a/1.jpg", "b/2.png", "c/3.jpg")
    text = (
        "\ufeff,File,class,count,score,zip,note\r\n"
        '0,a/1.jpg,dog,1,0.5,007,"x, ""y""\nz"\r\n'
        "1,./b//2.png,ant,-2,1,1,\r\n\r\n"
        f"2,{tmp_path}/c/3.jpg,dog,,nan,,plain\r\n"
    )
    source = _source(tmp_path, "list.csv", text)
    assert source.classes == ("ant", "dog")
    assert source.fields == {"count": "int", "score": "float", "zip": "string", "note": "string"}
    assert _samples(source) == [
        Sample(
            "a/1",
            _JPEG + b"a/1.jpg",
            1,
            {"count": 1, "score": 0.5, "zip": "007", "note": 'x, "y"\nz'},
            "a/1.jpg",
        ),
        Sample(
            "b/2",
            _JPEG + b"b/2.png",
            0,
            {"count": -2, "score": 1.0, "zip": "1", "note": None},
            "b/2.png",
        ),
        Sample(
            "c/3",
            _JPEG + b"c/3.jpg",
            1,
            {"count": None, "score": None, "zip": None, "note": "plain"},
            "c/3.jpg",
        ),
    ]


def test_odd_names_go_through_a_table(tmp_path: Path) -> None:
    names = [" lead.jpg", "tab\there.jpg", "new\nline.jpg", 'quote"2.jpg', "back\\slash.jpg"]
    _images(tmp_path, *names)
    cells = ['"' + name.replace('"', '""') + '"' for name in names]
    source = _source(tmp_path, "list.tsv", "path\tlabel\n" + "".join(f"{c}\t0\n" for c in cells))
    assert [sample.path for sample in _samples(source)] == names
    assert source.classes == ("0",)


def test_paths_that_are_no_utf8_are_kept(tmp_path: Path) -> None:
    (tmp_path / "caf\udce9.jpg").write_bytes(_JPEG)
    (tmp_path / "caf%E9.jpg").write_bytes(_JPEG)
    source = _source(tmp_path, "list.csv", b"path\ncaf\xe9.jpg\ncaf%E9.jpg\n")
    assert [(s.path, s.key) for s in _samples(source)] == [
        ("caf\udce9.jpg", "caf%25E9"),
        ("caf%E9.jpg", "caf%E9"),
    ]


def test_json_lines_keep_the_types_of_their_values(tmp_path: Path) -> None:
    _images(tmp_path, "1.jpg", "2.jpg")
    rows: list[dict[str, object]] = [
        {"image": "1.jpg", "label": 3, "ok": True, "n": 1, "x": 1, "s": "é", "j": [1], "m": 1},
        {"image": "2.jpg", "label": 0, "ok": None, "n": 2, "x": 0.5, "j": {"a": 1}, "m": "one"},
    ]
    source = _source(tmp_path, "list.jsonl", "\n\n".join(map(json.dumps, rows)))
    assert source.fields == {
        "ok": "bool",
        "n": "int",
        "x": "float",
        "s": "string",
        "j": "json",
        "m": "json",
    }
    assert source.classes == ("0", "1", "2", "3")
    assert _labels(source) == [3, 0]
    assert source[1].extra == {"ok": None, "n": 2, "x": 0.5, "s": None, "j": {"a": 1}, "m": "one"}
    assert source[0].extra["x"] == 1.0
    assert isinstance(source[0].extra["x"], float)


def test_keys_are_unique_over_the_whole_list(tmp_path: Path) -> None:
    names = ["a/1.jpg", "b/1.jpg", "a/1.png", "x.jpg.jpg", "c.jpg", "x.jpg", "x"]
    _images(tmp_path, *names)
    source = _source(tmp_path, "list.csv", "path\n" + "\n".join(names))
    keys = [sample.key for sample in _samples(source)]
    assert keys == ["a/1.jpg", "b/1", "a/1.png", "x.jpg.jpg", "c", "x.jpg", "x"]
    assert source.classes == ()
    assert _labels(source) == [None] * 7


def test_labels_are_pinned_by_name_or_number(tmp_path: Path) -> None:
    _images(tmp_path, "1.jpg", "2.jpg")
    by_name = _source(tmp_path, "n.csv", "path,label\n1.jpg,b\n2.jpg,a\n", classes=("b", "c", "a"))
    assert (by_name.classes, _labels(by_name)) == (("b", "c", "a"), [0, 2])
    by_number = _source(
        tmp_path, "i.csv", "path,label\n1.jpg,2\n2.jpg,0\n", classes=("x", "y", "z")
    )
    assert (by_number.classes, _labels(by_number)) == (("x", "y", "z"), [2, 0])


def test_columns_and_root_can_be_chosen(tmp_path: Path) -> None:
    _images(tmp_path / "images", "1.jpg")
    (tmp_path / "lists").mkdir()
    file = tmp_path / "lists/l.csv"
    file.write_text("id,where,what\n9,1.jpg,cat\n")
    source = open_source(file, root=tmp_path / "images", path_column="where", label_column="what")
    assert source.kind == "list"
    assert source[0] == Sample("1", _JPEG + b"1.jpg", 0, {"id": 9}, "1.jpg")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("l.csv", "", "no column of paths"),
        ("l.csv", "a/1.jpg,0\n", "no column of paths.*'a/1.jpg'.*--path-column"),
        ("l.csv", "path,label\n1.jpg\n", "line 2: has 1 cells, the header 2"),
        ("l.csv", "path,x,x\n", "line 1: two columns have the same name"),
        ("l.csv", 'path\n"1.jpg\n', "line 2: unexpected end of data"),
        ("l.csv", "path,label\n1.jpg,a\n2.jpg,\n", "line 3: has no label, others do"),
        ("l.csv", "path\n1.jpg\n2.jpg\n./1.jpg\n", "line 4: '1.jpg' is on line 2 already"),
        ("l.csv", "path\n../1.jpg\n", "line 2: '../1.jpg' lies outside.*--root"),
        ("l.csv", "path\n/etc/1.jpg\n", "line 2: '/etc/1.jpg' lies outside"),
        ("l.csv", "path\na/../../1.jpg\n", "line 2: .* lies outside"),
        (
            "l.csv",
            "path,label\n1.jpg,5000000\n",
            "line 2: the label 5000000 is no number of a class",
        ),
        ("l.csv", "path,label\n1.jpg,0\n2.jpg,-1\n", "line 3: the label -1 is no number"),
        ("l.csv", b"path,label\n1.jpg,\xff\n", "line 2: is no UTF-8"),
        ("l.csv", "path\n1.jpg\n".encode("utf-16"), "is UTF-16"),
        ("l.jsonl", '{"path": "1.jpg"}\n[1]\n', "line 2: is no JSON object"),
        ("l.jsonl", '{"path": "1.jpg"}\n{"path"\n', "line 2: is no JSON:"),
        ("l.jsonl", '{"path": "1.jpg", "x": NaN}\n', "line 1: .*NaN"),
        ("l.jsonl", "[" * 100_000, "line 1: is no JSON"),
        ("l.jsonl", '{"path": 1}\n', "line 1: 'path' is no path but 1"),
        ("l.jsonl", '{"path": "a\\u0000"}\n', "line 1: .* is no path"),
        ("l.jsonl", '{"path": "1.jpg", "label": [1]}\n', "line 1: the label is neither"),
        ("l.jsonl", '{"path": "1"}\n{"path": "2", "label": 1}\n', "line 2: has 'label', which"),
        ("l.jsonl", '{"path": "1", "x": "\\ud800"}\n', "line 1: is no UTF-8"),
    ],
)
def test_a_malformed_list_is_refused_by_line(
    tmp_path: Path, name: str, text: str | bytes, message: str
) -> None:
    with pytest.raises(SourceError, match=message):
        _source(tmp_path, name, text)


def test_labels_outside_the_pinned_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="line 3: the label 'c' is none of the 2 given"):
        _source(tmp_path, "l.csv", "path,label\n1.jpg,a\n2.jpg,c\n", classes=("a", "b"))
    with pytest.raises(
        SourceError, match="line 2: the label 2 is no number of a class from 0 to 1"
    ):
        _source(tmp_path, "l.csv", "path,label\n1.jpg,2\n", classes=("a", "b"))


def test_a_missing_file_is_an_error_of_its_sample(tmp_path: Path) -> None:
    source = _source(tmp_path, "l.csv", "path\ngone.jpg\n")
    with pytest.raises(SampleError, match=r"gone\.jpg: No such file"):
        source[0]
    assert source.path(0) == "gone.jpg"


def test_the_fingerprint_ignores_blank_lines_only(tmp_path: Path) -> None:
    first = _source(tmp_path, "l.csv", "path,label\n1.jpg,a\n2.jpg,b\n").fingerprint
    assert _source(tmp_path, "l.csv", "path,label\n\n1.jpg,a\n2.jpg,b\n").fingerprint == first
    assert _source(tmp_path, "l.csv", "path,label\n1.jpg,b\n2.jpg,a\n").fingerprint != first
    assert _source(tmp_path, "l.csv", "path,label\n1.jpg,a\n3.jpg,b\n").fingerprint != first


def test_a_list_whose_labels_are_all_blank_has_none_and_says_so(tmp_path: Path) -> None:
    source = _source(tmp_path, "l.csv", "path,label\n1.jpg,\n2.jpg,\n")
    assert source.classes == ()
    assert [note.reason for note in source.report.notes] == ["has no labels"]
