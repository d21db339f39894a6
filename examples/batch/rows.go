package batch

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Row is one line of work.
type Row struct {
	Line int
	// Key is what the journal knows it by: a hash of its values, so that the same work in
	// a file that was edited or sorted is still the same work, and so that the journal
	// holds no text and no number.
	Key string
	// Values are those of the columns asked for.
	Values []string
}

// BadRow is a line that was left out.
type BadRow struct {
	Line int
	Why  string
}

// Read reads the named columns of a CSV file with a heading. The columns may stand in any
// order beside others. The clean function puts the values of a row into their final form,
// or says what is wrong with them. A broken row is left out, and the rest goes on.
//
// With once, a row that repeats an earlier one is left out as well; else both are there,
// with the same key, and the work of both is done once.
func Read(text []byte, names []string, once bool, clean func([]string) error) (rows []Row, bad []BadRow, err error) {
	lines := NewLines(text)
	heading, _, err := lines.Next()
	if err != nil {
		return nil, nil, fmt.Errorf("no heading with %s: %w", strings.Join(names, " and "), err)
	}
	at, err := columns(heading, names)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]int{}
	for {
		fields, line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return rows, bad, nil
		}
		r := Row{Line: line}
		if err == nil {
			r.Values, err = pick(fields, at, len(heading))
		}
		if err == nil {
			err = clean(r.Values)
		}
		if err == nil {
			r.Key = keyOf(r.Values)
			if first, again := seen[r.Key]; again && once {
				err = fmt.Errorf("it repeats line %d", first)
			}
		}
		if err != nil {
			bad = append(bad, BadRow{line, err.Error()})
			continue
		}
		seen[r.Key] = line
		rows = append(rows, r)
	}
}

// columns finds the names in a heading.
func columns(heading, names []string) ([]int, error) {
	for i, h := range heading {
		heading[i] = strings.ToLower(strings.TrimSpace(h))
	}
	at := make([]int, len(names))
	for i, name := range names {
		at[i] = slices.Index(heading, name)
		if at[i] < 0 {
			return nil, fmt.Errorf("line 1: no column %q in the heading", name)
		}
		if slices.Contains(heading[at[i]+1:], name) {
			return nil, fmt.Errorf("line 1: two columns %q in the heading", name)
		}
	}
	return at, nil
}

// pick takes the values out of a record.
func pick(fields []string, at []int, width int) ([]string, error) {
	if len(fields) != width {
		return nil, fmt.Errorf("%d fields, the heading has %d", len(fields), width)
	}
	values := make([]string, len(at))
	for i, n := range at {
		if values[i] = fields[n]; !utf8.ValidString(values[i]) {
			return nil, errors.New("it is not UTF-8")
		}
	}
	return values, nil
}

func keyOf(values []string) string {
	h := sha256.New()
	for _, v := range values {
		fmt.Fprintf(h, "%d:%s,", len(v), v)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Lines reads CSV records and goes on at the next line after a broken one. Package
// csv alone would take everything behind a quote that is never closed for text.
type Lines struct {
	text []byte
	line int // lines before text
	csv  *csv.Reader
}

// NewLines reads a text, with a byte order mark or without.
func NewLines(text []byte) *Lines { return &Lines{text: bytes.TrimPrefix(text, []byte("\ufeff"))} }

// Next returns the next record and the line where it begins.
func (l *Lines) Next() ([]string, int, error) {
	if l.csv == nil {
		l.csv = csv.NewReader(bytes.NewReader(l.text))
		l.csv.FieldsPerRecord = -1
	}
	fields, err := l.csv.Read()
	if broken, ok := errors.AsType[*csv.ParseError](err); ok {
		at := l.line + broken.StartLine
		for range broken.StartLine {
			_, l.text, _ = bytes.Cut(l.text, []byte("\n"))
		}
		l.line, l.csv = at, nil
		return nil, at, broken.Err
	}
	if err != nil {
		return nil, 0, err
	}
	line, _ := l.csv.FieldPos(0)
	return fields, l.line + line, nil
}
