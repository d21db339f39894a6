package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/outlay-go/outlay/examples/batch"
)

// row is one line of work: a message to a number, or an address, which has no number.
type row struct {
	line     int
	to, text string
}

// format says what the rows of a file look like.
type format struct {
	what    string
	columns []string
	// parse reads the values of the columns. Its error says what is wrong with them.
	parse func(values []string) (row, error)
}

var messageFile = format{"messages", []string{"to", "text"}, func(v []string) (row, error) {
	to := strings.NewReplacer(" ", "", "-", "", ".", "", "(", "", ")", "").Replace(v[0])
	switch n := utf8.RuneCountInString(v[1]); {
	case !phoneNumber.MatchString(to):
		return row{}, errors.New("to is no number such as +12025550123")
	case strings.TrimSpace(v[1]) == "":
		return row{}, errors.New("text is empty")
	case n > 1600:
		return row{}, fmt.Errorf("text has %d characters, the vendor takes 1600", n)
	}
	return row{to: to, text: v[1]}, nil
}}

var phoneNumber = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

var addressFile = format{"addresses", []string{"address"}, func(v []string) (row, error) {
	address := strings.TrimSpace(v[0])
	if address == "" {
		return row{}, errors.New("address is empty")
	}
	return row{text: address}, nil
}}

// load reads the file, or the default if no file is named. Rows that make no sense are
// told to errs and left out.
func load(path string, data []byte, f format, errs io.Writer) ([]row, error) {
	name := f.what + ".csv"
	if path != "" {
		var err error
		if data, err = os.ReadFile(path); err != nil {
			return nil, err
		}
		name = path
	}
	rows, bad, err := parseCSV(data, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, b := range bad {
		fmt.Fprintf(errs, "%s:%d: %s: row left out\n", name, b.line, b.why)
	}
	return rows, nil
}

// badRow is a line that was left out.
type badRow struct {
	line int
	why  string
}

// parseCSV reads rows under a heading, whose columns may stand in any order beside
// others. A broken row is named by its line, and the rest goes on. A row that repeats
// an earlier one is left out as well: nobody wants to pay for the same message twice.
func parseCSV(data []byte, f format) (rows []row, bad []badRow, err error) {
	lines := batch.NewLines(data)
	heading, _, err := lines.Next()
	if err != nil {
		return nil, nil, fmt.Errorf("no heading with %s: %w", strings.Join(f.columns, " and "), err)
	}
	at, err := columns(heading, f.columns)
	if err != nil {
		return nil, nil, err
	}
	seen := map[row]int{}
	for {
		fields, line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		var r row
		if err == nil {
			r, err = f.read(fields, at, len(heading))
		}
		if first, again := seen[r]; err == nil && again {
			err = fmt.Errorf("it repeats line %d", first)
		}
		if err != nil {
			bad = append(bad, badRow{line, err.Error()})
			continue
		}
		seen[r] = line
		r.line = line
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, bad, errors.New("no usable row")
	}
	return rows, bad, nil
}

// columns finds the wanted names in a heading.
func columns(heading, wanted []string) ([]int, error) {
	names := make([]string, len(heading))
	for i, h := range heading {
		names[i] = strings.ToLower(strings.TrimSpace(h))
	}
	at := make([]int, len(wanted))
	for i, w := range wanted {
		at[i] = slices.Index(names, w)
		if at[i] < 0 {
			return nil, fmt.Errorf("line 1: no column %q in the heading", w)
		}
		if slices.Contains(names[at[i]+1:], w) {
			return nil, fmt.Errorf("line 1: two columns %q in the heading", w)
		}
	}
	return at, nil
}

func (f format) read(fields []string, at []int, width int) (row, error) {
	if len(fields) != width {
		return row{}, fmt.Errorf("%d fields, the heading has %d", len(fields), width)
	}
	values := make([]string, len(at))
	for i, n := range at {
		if values[i] = fields[n]; !utf8.ValidString(values[i]) {
			return row{}, errors.New("it is not UTF-8")
		}
	}
	return f.parse(values)
}
