"""Detect the format of an edge list from its first lines: separator, header, columns, sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from louvain_um.errors import GraphError, Uncertain, shown
from louvain_um.formats import column_roles as columns
from louvain_um.formats.column_roles import Roles, choose, choose_timed
from louvain_um.formats.edge_list import first_lines as header
from louvain_um.formats.edge_list.first_lines import (
    SAMPLE_BYTES,
    SAMPLE_LINES,
    Sample,
    sample_of,
    separator_of,
    text_of,
    whole_lines,
)
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.ids import ids_are_text, is_number
from louvain_um.formats.parse_errors import (
    DECIMAL_COMMA,
    OPEN_QUOTE,
    WHOLE,
    opens_quote,
    refuse_brackets,
    split,
)
from louvain_um.formats.read_options import COLUMNS, ReadOptions

THOUSANDS = re.compile(r"[1-9]\d{0,2},\d{3}", re.A)
"""A weight whose comma separates decimals or thousands."""

GROUPS = r"[1-9]\d{0,2}((\.\d{3})+,\d+|(,\d{3})+\.\d+|([ '\u00a0\u202f]\d{3})+([.,]\d+)?)"
SIGNED = rf"({GROUPS}|\d+([.,]\d+)?)"
FORMATTED = re.compile(rf"-?({GROUPS}|[$€£¥] ?{SIGNED}|{SIGNED} ?[$€£¥%])", re.A)
"""A number as people write it, which is refused where a weight is read: 1.234,50 or $5."""

MORE_LINES = 1000
"""Lines in which the ends of edges between words are looked for."""

LEAST_MATRIX = 4
"""Lines of the smallest matrix that is no edge list: three columns can be weighted edges."""

HEADERS = [["source", "target"], ["from", "to"], ["src", "dst"]]
"""How headers begin that are hardly edges."""

COMMENT_OF_WORDS = re.compile(rb"(#|%|//)[\s#%/]")
"""How a comment begins that is no field such as #python."""

BETWEEN = {"->", "-->", "--", "-", "→", "=>", "<->"}
"""What is no id, but stands between the ends of an edge."""


@dataclass(slots=True)
class DetectedFormat:
    """The format of an edge list, detected from its beginning."""

    separator: int = 32
    roles: Roles = field(default_factory=lambda: Roles(0, 1))
    order: list[int] = field(default_factory=lambda: [0, 1])
    width: int = 2
    columns: int = 2
    named: bool = False
    weights: str = ""
    place: int = 2
    decimal_comma: bool = False
    ambiguous: tuple[int, str] | None = None
    mixed: bool = False
    names: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    numeric: list[int] = field(default_factory=list)
    header: str | None = None
    skip: int = 0
    lines: int = 0
    announced: int | None = None
    sampled: int = 0
    notes: list[str] = field(default_factory=list)
    text_ids: list[str] = field(default_factory=list)
    konect: str = ""
    last_line: int = 0

    def column(self, place: int) -> str:
        """Return a column in reading order as messages name it."""
        index = self.order[place] if place < len(self.order) else place
        shown = "the third column" if index == 2 else f"column {index + 1}"
        return f"{shown} ({self.names[place]!r})" if place < len(self.names) else shown

    def title(self, place: int) -> str:
        """Return the name of a column in reading order, or its number from 1."""
        index = self.order[place] if place < len(self.order) else place
        return self.titles[index] if index < len(self.titles) else str(index + 1)

    @property
    def end_titles(self) -> tuple[str, str]:
        """Names of the columns of ids in reading order, or by their role without a header."""
        first, second = (self.titles[i] if i < len(self.titles) else "" for i in self.order[:2])
        if not first and not second and self.order[0] != self.roles.source:
            return "target", "source"
        return first, second

    @property
    def in_place(self) -> bool:
        """Whether the ends are the first two columns, in either order."""
        return set(self.order[:2]) == {0, 1}


def sniff(file: GraphFile, options: ReadOptions, *, timed: bool = False) -> DetectedFormat:
    """Detect the format of an edge list, which may have times, without consuming it."""
    sample = sample_of(file)
    detected = DetectedFormat(announced=sample.announced, titles=sample.names)
    detected.sampled = len(sample.text)
    detected.konect, detected.last_line = sample.konect, sample.last_line
    if sample.text:
        chosen = options.separator
        detected.separator = ord(chosen) if chosen else separator_of(sample.text)
    if detected.separator == 9 and all(b'"' not in line for line in sample.text):
        indented = all(line.startswith(b"\t") for line in sample.text)
        plain = all(len(line.split()) == len(split(line, 9)) - indented for line in sample.text)
        detected.separator = 32 if plain else 9
    numbers = sample.number
    for number, line in zip(numbers, sample.text, strict=True):
        if opens_quote(line, detected.separator):
            raise file.error(OPEN_QUOTE, number)
    rows = [split(line, detected.separator) for line in sample.text]
    _note_comments(detected, sample, rows)
    if rows and _has_header(file, sample, rows, detected, options, timed=timed):
        detected.header = text_of(sample.text[0])
        detected.skip, detected.lines = sample.past[0], numbers[0]
        detected.titles = rows[0]
        rows, numbers = rows[1:], numbers[1:]
        short = len(detected.titles) + 1
        numbered = all(len(row) == short and row[0] == str(k) for k, row in enumerate(rows, 1))
        if rows and numbered and detected.separator != 44:  # that may be in decimals
            detected.titles = ["", *detected.titles]  # R names no column of row numbers
    lists = not timed and not options.names_columns
    if rows and detected.separator == 58 and not any(cell for row in rows for cell in row[1::2]):
        raise file.error("has two colons between fields; write one (sed 's/::/:/g')", numbers[0])
    below = [[*map(str.lower, row[:2])] in HEADERS for row in rows[1:]]
    if any(below) and detected.header is None and options.header is None:
        raise file.error(
            "names columns below other lines; delete those, or pass header=False (--no-header) if "
            "it is an edge",
            numbers[1 + below.index(True)],
        )
    if rows and detected.header is None and lists:
        refuse_brackets(file, rows, numbers[0])
        _refuse_members(file, rows, numbers)
    _assign_columns(file, rows, detected, options, timed=timed)
    if not rows:
        return detected
    if lists:
        _refuse_matrix(file, rows, numbers[0])
        if detected.separator == 32:
            _refuse_other_lists(file, rows, numbers[0])
    if detected.order != list(range(detected.width)):
        rows = [[row[i] if i < len(row) else "" for i in detected.order] for row in rows]
    begun = sample.text[1 if detected.header is not None else 0 :]
    quoted = detected.in_place and any(line.lstrip().startswith(b'"') for line in begun)
    quoted |= not detected.in_place and any(b'"' in line for line in begun)
    n_named = sum(any(header.is_word(name) for name in row[:2]) for row in rows)
    words = [[header.is_word(name) for name in row[:2]] for row in rows]
    detected.named = options.ids == "text" or (options.ids == "auto" and quoted)
    if options.ids == "auto" and not quoted:
        detected.named = 2 * n_named > len(rows)
        for number, row in zip(numbers, rows, strict=True) if not detected.named else ():
            negative = any(name.startswith("-") or not name for name in row[:2])
            text = next((name for name in row[:2] if not is_number(name)), "")
            if text and len(row) > 1 and not negative:
                detected.named, detected.text_ids = True, [ids_are_text(text, number)]
                break
    detected.mixed = len(rows) > 2 and (
        all(ends == [True, False] for ends in words) or all(ends == [False, True] for ends in words)
    )
    _detect_weights(detected, rows, numbers)
    if detected.header is not None and options.header is None:
        _check_names(file, detected, chosen=options.names_columns)
    return detected


def _note_comments(detected: DetectedFormat, sample: Sample, rows: list[list[str]]) -> None:
    """Note a comment that may be an edge: it has as many fields, or there are no other lines."""
    blanks, width = detected.separator == 32, len(rows[-1]) if rows else 0
    words = blanks or width < 3
    found = [
        (number, line)
        for number, line in sample.comments[-SAMPLE_LINES:]
        if not (rows and len(split(line, detected.separator)) != width)
        and not (words and COMMENT_OF_WORDS.match(line))
    ]
    several = len(found) > 1 and not (rows and blanks)
    if found and (several or (rows and found[-1][0] > sample.number[0])):
        number, line = found[-1]
        left_out = f"line {number} ({shown(text_of(line))}) is left out as a comment"
        detected.notes.append(Uncertain(f"{left_out}; if it is an edge, quote its first field"))


def _refuse_matrix(file: GraphFile, rows: list[list[str]], line: int) -> None:
    """Raise an error for a square matrix of numbers that is symmetric as far as it was sampled."""
    width, seen = len(rows[0]), len(rows)
    whole = seen < SAMPLE_LINES and len(file.peek(SAMPLE_BYTES)) < SAMPLE_BYTES
    if not LEAST_MATRIX <= seen <= width or (whole and seen < width):
        return
    if any(len(row) != width or any(map(header.is_word, row)) for row in rows):
        return
    if all(rows[i][j] == rows[j][i] for i in range(seen) for j in range(i)):
        raise file.error(
            f"{width} numbers a line in as many lines seem to be a matrix, not edges; read it with "
            "numpy.loadtxt and pass that to as_graph, or name the columns with source='1', "
            "target='2'",
            line,
        )


def _refuse_members(file: GraphFile, rows: list[list[str]], numbers: list[int]) -> None:
    """Raise an error for lines that each list the members of a community, or neighbours."""
    widths = {len(row) for row in rows}
    cells = [cell for row in rows for cell in row]
    ids = all(map(is_number, cells)) or all(map(header.is_word, cells))
    if len(widths) < 2 or max(widths) < 3 or not ids:
        return
    once = len(set(cells)) == len(cells)
    if not once and (max(widths) < 4 or len(widths) < 3):
        return
    other = next(k for k, row in enumerate(rows) if len(row) != len(rows[0]))
    what = "the members of a community" if once else "a vertex and its neighbours"
    raise file.error(
        f"{len(rows[other])} ids after lines of {len(rows[0])}: each line seems to list {what}, "
        "not an edge; write one edge per line, or, for lists of neighbours, pass "
        "format='adjacency' (--format adjacency)",
        numbers[other],
    )


def _refuse_other_lists(file: GraphFile, rows: list[list[str]], line: int) -> None:
    """Raise an error for lists of neighbours, and for edges with an arrow or a line between."""
    if all(row[0].endswith(":") for row in rows):
        raise file.error(
            f"{rows[0][0]!r} seems to begin a list of neighbours; write one edge per line, or name "
            "the columns with source='1', target='2'",
            line,
        )
    if all(row[1:2] and row[1] in BETWEEN for row in rows):
        raise file.error(
            f"{rows[0][1]!r} stands where the second id is expected; remove it, or name the "
            "columns with source='1', target='3'",
            line,
        )


def _has_header(
    file: GraphFile,
    sample: Sample,
    rows: list[list[str]],
    detected: DetectedFormat,
    options: ReadOptions,
    *,
    timed: bool,
) -> bool:
    """Return whether the first line is a header; note it if this is uncertain."""
    if options.header is not None:
        return options.header
    wanted = _wanted(options)
    first = [name.lower() for name in rows[0]]
    values = any(header.is_number(cell) or header.ANY_DATE.match(cell) for cell in rows[0])
    if not values if timed else any(name in first for name in wanted):
        return True
    between = 9 if b"\t" in sample.comment else detected.separator
    titles = split(sample.comment, between)
    as_many = len(titles) == len(rows[0]) > 2 and all(map(header.is_word, titles))
    known = wanted or (as_many and columns.find_ends(titles))
    if known and wanted <= {name.lower() for name in titles}:
        detected.titles = titles
        return False
    if as_many and not wanted and between != 32:
        comment = f"the comment {shown(text_of(sample.comment))} may name the columns"
        detected.notes.append(Uncertain(f"{comment}; name the ends with source=… and target=…"))
    if timed:
        return False
    ends = 0, 1
    if options.source is not None and options.target is not None:
        texts = str(options.source), str(options.target)
        if all(text.isdecimal() and 0 < int(text) <= len(first) for text in texts):
            ends = int(texts[0]) - 1, int(texts[1]) - 1
            others = [place for place in range(len(first)) if place not in ends]
            rows = [[row[i] for i in (*ends, *others) if i < len(row)] for row in rows]
    if header.has_header(rows):
        return True

    def all_rows() -> tuple[list[list[str]], bool]:
        lines = [line for line in whole_lines(file) if line.strip() and line[:1] not in b"#%"]
        whole = len(file.peek(SAMPLE_BYTES)) < SAMPLE_BYTES
        split_ = [split(line, detected.separator) for line in lines]
        return [[row[i] for i in ends if i < len(row)] for row in split_], whole

    kind = header.unrepeated_first_line(rows, (0, 1), all_rows)
    if kind == "edge":
        detected.notes.append(
            Uncertain(
                f"line {sample.number[0]} ({text_of(sample.text[0])!r}) is read as an edge; if it "
                "is a header, pass header=True"
            )
        )
    return kind == "header"


def _wanted(options: ReadOptions) -> set[str]:
    """Return the names in lower case of columns that the options give by name."""
    given = (getattr(options, option) for option in COLUMNS)
    return {name.lower() for name in given if isinstance(name, str) and not name.isdecimal()}


def _assign_columns(
    file: GraphFile,
    rows: list[list[str]],
    detected: DetectedFormat,
    options: ReadOptions,
    *,
    timed: bool,
) -> None:
    """Decide which columns are read, and in which order."""
    titles = detected.titles
    detected.width = sorted(map(len, rows))[len(rows) // 2] if rows else max(2, len(titles))
    if timed and rows:  # lines with more fields are errors
        detected.width = len(rows[0])
    width = max(2, detected.width, len(titles))
    more = rows
    if width > 2 and not options.names_columns and any(header.is_word(row[0]) for row in rows):
        lines = whole_lines(file)[detected.lines :][:MORE_LINES]
        more = [split(line, detected.separator) for line in lines if line[:1] not in (b"#", b"%")]
        more = [row for row in more if len(row) >= min(3, width)] or rows
    try:
        if timed:
            konect = bool(detected.konect)
            roles = choose_timed(titles or None, width, options, more, konect=konect)
        else:
            roles = choose(titles or None, width, options, more)
    except GraphError as error:
        uncertain = timed and detected.header is not None and options.header is None
        hint = f"; if line {detected.lines} is an edge, pass header=False (--no-header)"
        raise file.error(f"{error}{hint if uncertain else ''}", detected.lines or None) from None
    detected.titles = titles = [columns.title_of(title) for title in titles]
    ends = roles.source, roles.target
    if set(ends) == {0, 1}:
        ends = 0, 1
    detected.roles = roles
    skipped = {*ends, roles.time, roles.relation, roles.marker}
    detected.order = [*ends, *(i for i in range(width) if i not in skipped)]
    detected.names = [titles[i].lower() for i in detected.order if i < len(titles)]
    unread = {roles.time, roles.relation, roles.marker} - {None}
    detected.columns = detected.width - sum(i < detected.width for i in unread if i is not None)
    if roles.weight is not None:
        detected.weights, detected.place = "weight", detected.order.index(roles.weight)
        # Expected in short lines too: they get an error with line and remedy.
        detected.columns = max(detected.columns, detected.place + 1)
        detected.width = max(detected.width, roles.weight + 1)


def _detect_weights(detected: DetectedFormat, rows: list[list[str]], numbers: list[int]) -> None:
    """Find the weight, what its column contains, and which other columns are numeric."""
    for place in range(2, detected.columns):
        values = [row[place] for row in rows if len(row) > place and row[place]]
        name = detected.names[place] if place < len(detected.names) else "?"
        other = columns.is_time(name) or columns.is_record(name)
        good = sum(header.is_number(cell) or bool(FORMATTED.fullmatch(cell)) for cell in values)
        if not other and values and 2 * good > len(values):
            detected.numeric.append(place)
    titled = len(detected.names) > 2
    if titled and not detected.weights and len(detected.numeric) == 1:
        detected.weights, detected.place = "taken", detected.numeric[0]
    place = detected.place
    cells = [(number, row[place]) for number, row in zip(numbers, rows, strict=True) if row[place:]]
    if cells and not detected.weights:
        # A few bad weights, or one of two, do not make a column of words: reading reports them.
        good = sum(header.is_number(cell) for _, cell in cells)
        if 2 * good <= len(cells) and (good, len(cells)) != (1, 2):
            detected.weights = "named" if titled and detected.numeric else "other"
        elif not titled:
            detected.weights = "unnamed"
        else:
            time = columns.is_time(detected.names[2])
            detected.weights = "time" if time and not detected.numeric else "named"
    if detected.weights not in ("weight", "taken"):
        detected.numeric = [i for i in detected.numeric if i != place or titled]
    commas = [(number, cell) for number, cell in cells if DECIMAL_COMMA.fullmatch(cell)]
    detected.decimal_comma = bool(commas)
    if commas and all(THOUSANDS.fullmatch(cell) for _, cell in commas):
        detected.ambiguous = commas[0]


def _check_names(file: GraphFile, detected: DetectedFormat, *, chosen: bool) -> None:
    """Raise an error for a table that would be misread according to its header."""
    line, names = detected.lines, detected.names
    if columns.are_labels(names) and not chosen:
        raise file.error(
            columns.LABELS_NOT_EDGES + "read it as edges with header=True (--header)", line
        )
    if len(names) < detected.columns:
        raise file.error(
            f"{len(names)} column names, but lines have {detected.columns} fields; write decimals "
            "with a point and quote fields that contain a separator, or skip the line with "
            "header=True (--header)",
            line,
        )


def possible_counts(file: GraphFile, separator: int) -> list[int] | None:
    """Return the numbers of the first line that is not a comment, if it has two or three."""
    sample = sample_of(file)
    if not sample.text:
        return None
    row = split(sample.text[0], separator)
    if len(row) not in (2, 3) or not all(map(WHOLE.fullmatch, row)):
        return None
    return [int(name) for name in row]


def skip_first_line(file: GraphFile, detected: DetectedFormat) -> None:
    """Consume the first line that is not a comment."""
    sample = sample_of(file)
    detected.skip, detected.lines = sample.past[0], sample.number[0]
    file.read(detected.skip)
