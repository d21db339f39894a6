package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMessagesAreRead(t *testing.T) {
	tests := []struct {
		name, file string
		want       []row
		bad        []badRow
	}{
		{"plain", "to,text\n+12025550123,Hello\n", []row{{2, "+12025550123", "Hello"}}, nil},
		{"columns in another order, and more of them", "Name,TEXT, To\nÅsa,Hej,+46701740605\n", []row{{2, "+46701740605", "Hej"}}, nil},
		{"byte order mark", "\ufeffto,text\n+12025550123,Hello\n", []row{{2, "+12025550123", "Hello"}}, nil},
		{"CRLF, empty lines, no newline at the end", "to,text\r\n\r\n+12025550123,Hello\r\n\r\n+12025550124,Bye",
			[]row{{3, "+12025550123", "Hello"}, {5, "+12025550124", "Bye"}}, nil},
		{"quotes, commas and line breaks in a text", "to,text\n+12025550123,\"Say \"\"hi\"\",\nplease\"\n+12025550124,Bye\n",
			[]row{{2, "+12025550123", "Say \"hi\",\nplease"}, {4, "+12025550124", "Bye"}}, nil},
		{"a number as people write it", "to,text\n+1 (202) 555-01.23,Hello\n", []row{{2, "+12025550123", "Hello"}}, nil},
		{"any script", "to,text\n+12025550123,नमस्ते 👩🏽‍🚀\n", []row{{2, "+12025550123", "नमस्ते 👩🏽‍🚀"}}, nil},
		{"a quote that is never closed", "to,text\n+12025550123,\"Hello\n+12025550124,Bye\n",
			[]row{{3, "+12025550124", "Bye"}}, []badRow{{2, `extraneous or missing " in quoted-field`}}},
		{"a quote where none belongs", "to,text\n+12025550123,a\"b\n+12025550124,Bye\n",
			[]row{{3, "+12025550124", "Bye"}}, []badRow{{2, `bare " in non-quoted-field`}}},
		{"several broken rows", "to,text\n+12025550123,a\"b\n+12025550124,Bye\n\n+12025550125,\"x\n+12025550126,Ciao\n",
			[]row{{3, "+12025550124", "Bye"}, {6, "+12025550126", "Ciao"}},
			[]badRow{{2, `bare " in non-quoted-field`}, {5, `extraneous or missing " in quoted-field`}}},
		{"too few and too many fields", "to,text\n+12025550123\n+12025550124,a,b\n+12025550125,ok\n",
			[]row{{4, "+12025550125", "ok"}},
			[]badRow{{2, "1 fields, the heading has 2"}, {3, "3 fields, the heading has 2"}}},
		{"no number", "to,text\n12025550123,a\n+0123456789,b\n+12,c\ncall me,d\n+12025550125,ok\n",
			[]row{{6, "+12025550125", "ok"}},
			[]badRow{{2, "to is no number such as +12025550123"}, {3, "to is no number such as +12025550123"},
				{4, "to is no number such as +12025550123"}, {5, "to is no number such as +12025550123"}}},
		{"no text, and too much", "to,text\n+12025550123,  \n+12025550124," + strings.Repeat("é", 1601) + "\n+12025550125," + strings.Repeat("é", 1600) + "\n",
			[]row{{4, "+12025550125", strings.Repeat("é", 1600)}},
			[]badRow{{2, "text is empty"}, {3, "text has 1601 characters, the vendor takes 1600"}}},
		{"not UTF-8", "to,text\n+12025550123,caf\xe9\n+12025550124,café\n",
			[]row{{3, "+12025550124", "café"}}, []badRow{{2, "it is not UTF-8"}}},
		{"the same message again", "to,text\n+12025550123,a\n+12025550123,b\n+1 202 555 0123,a\n",
			[]row{{2, "+12025550123", "a"}, {3, "+12025550123", "b"}}, []badRow{{4, "it repeats line 2"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows, bad, err := parseCSV([]byte(tt.file), messageFile)
			require.NoError(t, err)
			require.Equal(t, tt.want, rows)
			require.Equal(t, tt.bad, bad)
		})
	}
}

func TestFilesWithoutUse(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"empty", "", "no heading with to and text: EOF"},
		{"only a heading", "to,text\n", "no usable row"},
		{"only broken rows", "to,text\nx\n", "no usable row"},
		{"a column is missing", "to,body\n+12025550123,a\n", `line 1: no column "text" in the heading`},
		{"a column is there twice", "to,text,To\n+12025550123,a,b\n", `line 1: two columns "to" in the heading`},
		{"semicolons", "to;text\n+12025550123;a\n", `line 1: no column "to" in the heading`},
		{"a broken heading", "to,\"text\n", `no heading with to and text: extraneous or missing " in quoted-field`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := parseCSV([]byte(tt.file), messageFile)
			require.EqualError(t, err, tt.want)
		})
	}
}

func TestAddressesAreRead(t *testing.T) {
	rows, bad, err := parseCSV([]byte("address,name\n\" 1 Main St, Springfield \",Hall\n,Nowhere\n"), addressFile)
	require.NoError(t, err)
	require.Equal(t, []row{{2, "", "1 Main St, Springfield"}}, rows)
	require.Equal(t, []badRow{{3, "address is empty"}}, bad)
}

func TestOwnFiles(t *testing.T) {
	var errs bytes.Buffer
	messages, err := load("", defaultMessages, messageFile, &errs)
	require.NoError(t, err)
	addresses, err := load("", defaultAddresses, addressFile, &errs)
	require.NoError(t, err)
	require.Empty(t, errs.String())
	require.GreaterOrEqual(t, len(messages), 300)
	require.GreaterOrEqual(t, len(addresses), 200)
}

func TestBadRowsAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.csv")
	require.NoError(t, os.WriteFile(path, []byte("to,text\nx,y\n+12025550123,a\n"), 0o600))
	var errs bytes.Buffer
	rows, err := load(path, nil, messageFile, &errs)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, path+":2: to is no number such as +12025550123: row left out\n", errs.String())
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{"to,text\n+12025550123,a\n", "to,text\n\"\n\"\"\n", "text,to\n\"a\nb\",\"+1 2025550123\"", "\ufeffto,text\r\n\xff,\"x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, bad, err := parseCSV(data, messageFile)
		lines := bytes.Count(data, []byte("\n")) + 1
		if err != nil {
			require.Empty(t, rows)
		}
		last := 1
		for _, r := range rows {
			require.Greater(t, r.line, last)
			require.LessOrEqual(t, r.line, lines)
			last = r.line
		}
		last = 1
		for _, b := range bad {
			require.Greater(t, b.line, last)
			require.LessOrEqual(t, b.line, lines)
			last = b.line
		}
	})
}
