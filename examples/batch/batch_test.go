package batch

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// open opens a journal until the end of the test.
func open(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := OpenJournal(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func rows(n int) []Row {
	var all []Row
	for i := range n {
		all = append(all, Row{Line: i + 2, Key: fmt.Sprint("k", i), Values: []string{fmt.Sprint("v", i)}})
	}
	return all
}

// worker counts what it was asked to do.
type worker struct {
	mu   sync.Mutex
	done map[string]int
	say  func(r Row, nth int) (Result, error)
}

func (w *worker) do(_ context.Context, r Row) (Result, error) {
	w.mu.Lock()
	w.done[r.Key]++
	nth := w.done[r.Key]
	w.mu.Unlock()
	if w.say == nil {
		return Result{State: Done, Ref: "ref of " + r.Key, Cost: 2}, nil
	}
	return w.say(r, nth)
}

func newBatch(t *testing.T, n int, say func(Row, int) (Result, error)) (*Batch, *worker, *bytes.Buffer) {
	t.Helper()
	w, out := &worker{done: map[string]int{}, say: say}, new(bytes.Buffer)
	return &Batch{Name: "test", Rows: rows(n), Journal: open(t, filepath.Join(t.TempDir(), "journal")), Workers: 4, Do: w.do, Out: out}, w, out
}

func TestEachRowOnce(t *testing.T) {
	b, w, out := newBatch(t, 50, nil)
	b.Rows = append(b.Rows, b.Rows[0]) // the same work again
	require.NoError(t, b.Run(t.Context()))
	require.NoError(t, b.Run(t.Context()))
	require.Len(t, w.done, 50)
	for key, n := range w.done {
		require.Equal(t, 1, n, key)
	}
	require.True(t, b.Summary(nil))
	require.Contains(t, out.String(), "test: 51 done, 0 failed, 0 of unknown outcome, 0 waiting\n")
}

func TestWhatIsUnknownIsListedAndNotDoneAgain(t *testing.T) {
	b, w, out := newBatch(t, 3, func(r Row, _ int) (Result, error) {
		if r.Key == "k1" {
			return Result{State: Unknown}, nil
		}
		return Result{State: Done}, nil
	})
	require.NoError(t, b.Journal.Write("k2", Result{State: Begun})) // by a program that died
	require.NoError(t, b.Run(t.Context()))
	require.NoError(t, b.Run(t.Context()))
	require.Equal(t, map[string]int{"k0": 1, "k1": 1}, w.done)
	require.False(t, b.Summary(nil))
	require.Contains(t, out.String(), "test: 1 done, 0 failed, 2 of unknown outcome, 0 waiting\n  line 3: nobody knows whether it was sent; it is not sent again\n  line 4: nobody")

	b.Harmless, w.say = true, nil
	require.NoError(t, b.Run(t.Context()))
	require.Equal(t, map[string]int{"k0": 1, "k1": 2, "k2": 1}, w.done)
	require.True(t, b.Summary(nil))
}

func TestABudgetThatIsUsedUpLeavesTheOthers(t *testing.T) {
	midnight := time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC)
	b, w, out := newBatch(t, 10, func(r Row, _ int) (Result, error) {
		if r.Line%2 == 0 {
			return Result{}, fmt.Errorf("wrapped: %w", &budget.ExceededError{Budget: "even", RetryAt: midnight})
		}
		return Result{State: Done}, nil
	})
	require.NoError(t, b.Run(t.Context()))
	require.False(t, b.Summary(nil))
	require.Contains(t, out.String(), "test: 5 done, 0 failed, 0 of unknown outcome, 5 waiting\n  budget even is used up: 5 rows wait; go on after 2026-12-02 00:00:00 UTC\n")
	w.say = nil
	require.NoError(t, b.Run(t.Context()))
	require.Equal(t, 10, b.Count()[Done])
}

func TestOtherRefusalsStopTheRun(t *testing.T) {
	at := time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC)
	b, w, out := newBatch(t, 1000, func(Row, int) (Result, error) {
		return Result{}, &throttle.WaitError{Provider: "p", Reason: "gate", RetryAt: at}
	})
	err := b.Run(t.Context())
	require.Error(t, err)
	require.Less(t, len(w.done), 100)
	require.Equal(t, 1000, b.Count()[Waiting])
	require.False(t, b.Summary(err))
	require.Contains(t, out.String(), "(gate); go on after 2026-12-02 00:00:00 UTC\n")
}

func TestWhatMayWorkLaterIsTriedAgain(t *testing.T) {
	b, w, _ := newBatch(t, 4, func(r Row, nth int) (Result, error) {
		switch {
		case r.Key == "k0" && nth < 3:
			return Result{Cost: 1}, ErrLater
		case r.Key == "k1" && nth < 2:
			return Result{}, &budget.ExceededError{Busy: true}
		case r.Key == "k2":
			return Result{}, ErrLater
		}
		return Result{State: Done, Cost: 1}, nil
	})
	require.NoError(t, b.Run(t.Context()))
	require.Equal(t, map[string]int{"k0": 3, "k1": 2, "k2": passes, "k3": 1}, w.done)
	require.Equal(t, Result{State: Done, Cost: 3}, b.Journal.Last("k0"), "the cost of all tries")
	require.Equal(t, map[State]int{Done: 3, Waiting: 1}, b.Count())
}

func TestAStopLetsCallsEnd(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var begun atomic.Int32
	b, _, out := newBatch(t, 100, nil)
	b.Do = func(ctx context.Context, r Row) (Result, error) {
		if begun.Add(1) == 10 {
			stop()
		}
		require.NoError(t, ctx.Err(), "what is on its way is not cut off")
		return Result{State: Done}, nil
	}
	err := b.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.LessOrEqual(t, begun.Load(), int32(14))
	require.EqualValues(t, begun.Load(), b.Count()[Done])
	require.False(t, b.Summary(err))
	require.Contains(t, out.String(), "stopped; start it again to go on")
	require.Zero(t, b.Count()[Unknown])
}

// base is the transport of a test, which counts what is sent.
type base struct{ sent, closed atomic.Int32 }

func (b *base) RoundTrip(*http.Request) (*http.Response, error) {
	b.sent.Add(1)
	return nil, errors.New("no answer")
}

func (b *base) CloseIdleConnections() { b.closed.Add(1) }

func TestARowIsOnItsWayWhenItIsSent(t *testing.T) {
	b, _, _ := newBatch(t, 2, nil)
	var sent base
	rt := b.Journal.Sending(&sent)
	b.Do = func(ctx context.Context, r Row) (Result, error) {
		require.Equal(t, Waiting, b.Journal.Last(r.Key).State)
		if r.Key == "k1" {
			return Result{}, &budget.ExceededError{} // refused: it never leaves
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://example.com", strings.NewReader("x"))
		require.NoError(t, err)
		for range 2 {
			_, err = rt.RoundTrip(req)
			require.EqualError(t, err, "no answer")
			require.Equal(t, Begun, b.Journal.Last(r.Key).State)
		}
		return Result{State: Unknown}, nil
	}
	require.NoError(t, b.Run(t.Context()))
	require.EqualValues(t, 2, sent.sent.Load())
	require.Equal(t, map[State]int{Unknown: 1, Waiting: 1}, b.Count())
	rt.(interface{ CloseIdleConnections() }).CloseIdleConnections()
	require.EqualValues(t, 1, sent.closed.Load())
}

func TestNothingIsSentThatCannotBeWrittenDown(t *testing.T) {
	b, _, _ := newBatch(t, 100, nil)
	var sent base
	sms := transport.Provider{Name: "p", Match: []string{"example.com"}}
	rt, err := transport.New(transport.Config{Base: b.Journal.Sending(&sent), Providers: []transport.Provider{sms}})
	require.NoError(t, err)
	b.Do = func(ctx context.Context, r Row) (Result, error) {
		ctx = transport.WithMaxWait(ctx, transport.NoWait)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://example.com", strings.NewReader("x"))
		require.NoError(t, err)
		_, err = rt.RoundTrip(req)
		require.True(t, transport.NotSent(err), "%v", err)
		return Result{}, err
	}
	require.NoError(t, b.Journal.Close())
	require.ErrorContains(t, b.Run(t.Context()), "the journal cannot be written")
	require.Zero(t, sent.sent.Load())
}

func TestResults(t *testing.T) {
	b, _, _ := newBatch(t, 3, func(r Row, _ int) (Result, error) {
		switch r.Key {
		case "k0":
			return Result{State: Done, Ref: "r", Cost: budget.MustParse("0.5"), Values: []string{"x"}}, nil
		case "k1":
			return Result{State: Failed, Detail: "no, \"never\"\n"}, nil
		}
		return Result{}, ErrLater
	})
	require.NoError(t, b.Run(t.Context()))
	path := filepath.Join(t.TempDir(), "results.csv")
	require.NoError(t, os.WriteFile(path, []byte("an older one"), 0o600))
	require.NoError(t, b.WriteResults(path, []string{"value"}, "more"))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Equal(t, [][]string{
		{"line", "value", "state", "ref", "cost", "detail", "more"},
		{"2", "v0", "done", "r", "0.5", "", "x"},
		{"3", "v1", "failed", "", "0", "no, \"never\"\n", ""},
		{"4", "v2", "waiting", "", "0", "", ""},
	}, records)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file is left")
	require.Error(t, b.WriteResults(filepath.Join(path, "no directory"), nil))
}

func TestJournalSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	first := open(t, path)
	require.NoError(t, first.Write("a", Result{State: Begun}))
	require.NoError(t, first.Write("a", Result{State: Done, Ref: "r", Cost: 7, Values: []string{"\n"}}))
	require.NoError(t, first.Write("b", Result{State: Begun}))
	_, err := OpenJournal(path)
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, first.Close())

	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	tests := []struct {
		name, file string
		a, b       State
		wrong      string
	}{
		{"whole", string(whole), Done, Begun, ""},
		{"empty", "", Waiting, Waiting, ""},
		{"the last line was cut", string(whole[:len(whole)-5]), Done, Waiting, ""},
		{"only a piece", `{"ke`, Waiting, Waiting, ""},
		{"damage in the middle", "x" + string(whole), "", "", "line 1 is damaged"},
		{"a line without a key", string(whole) + "{}\n", "", "", "line 4 is damaged"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal")
			require.NoError(t, os.WriteFile(path, []byte(tt.file), 0o600))
			j, err := OpenJournal(path)
			if tt.wrong != "" {
				require.ErrorContains(t, err, tt.wrong)
				after, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Equal(t, tt.file, string(after), "what is damaged is left as it is")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.a, j.Last("a").State)
			require.Equal(t, tt.b, j.Last("b").State)
			require.NoError(t, j.Write("c", Result{State: Done}))
			require.NoError(t, j.Close())
			require.Equal(t, Done, open(t, path).Last("c").State, "what is written after a cut line can be read")
		})
	}
}

func TestRead(t *testing.T) {
	clean := func(v []string) error {
		if v[0] == "bad" {
			return errors.New("it is bad")
		}
		v[0] = strings.ToUpper(v[0])
		return nil
	}
	text := "\ufeffName, TO \r\n1,a\n\n2,bad\n3\n4,\"x\ny\"\n5,A\n6,\xff\n7,\"open\n8,b\n"
	got, bad, err := Read([]byte(text), []string{"to", "name"}, false, clean)
	require.NoError(t, err)
	var lines []int
	for _, r := range got {
		lines = append(lines, r.Line)
	}
	require.Equal(t, []int{2, 6, 8, 11}, lines)
	require.Equal(t, []string{"X\nY", "4"}, got[1].Values)
	require.Equal(t, []BadRow{
		{4, "it is bad"}, {5, "1 fields, the heading has 2"}, {9, "it is not UTF-8"}, {10, `extraneous or missing " in quoted-field`},
	}, bad)

	got, bad, err = Read([]byte(text), []string{"to"}, true, clean)
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Contains(t, bad, BadRow{8, "it repeats line 2"})

	again, _, err := Read([]byte("to\nb\na\n"), []string{"to"}, true, clean)
	require.NoError(t, err)
	require.Equal(t, got[0].Key, again[1].Key, "the same work in another file")

	for text, want := range map[string]string{
		"":             "no heading with to: EOF",
		"from\na\n":    `line 1: no column "to" in the heading`,
		"to,TO\na,b\n": `line 1: two columns "to" in the heading`,
	} {
		_, _, err := Read([]byte(text), []string{"to"}, true, clean)
		require.EqualError(t, err, want)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"to\na\n", "to\n\"\n\"\"\n", "x,to\n\"a\nb\",c", "\ufeffto\r\n\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, bad, _ := Read(text, []string{"to"}, true, func([]string) error { return nil })
		lines, last := bytes.Count(text, []byte("\n"))+1, 1
		for _, r := range got {
			require.Greater(t, r.Line, last)
			require.LessOrEqual(t, r.Line, lines)
			last = r.Line
		}
		for _, b := range bad {
			require.LessOrEqual(t, b.Line, lines)
		}
	})
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte("{\"key\":\"a\",\"state\":\"done\"}\n{\"key\":\"b\""))
	f.Add([]byte("{\"key\":\"a\",\"cost\":\"x\"}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "journal")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		j, err := OpenJournal(path)
		if err != nil {
			return
		}
		require.NoError(t, j.Write("z", Result{State: Done}))
		require.NoError(t, j.Close())
		j, err = OpenJournal(path)
		require.NoError(t, err)
		require.Equal(t, Done, j.Last("z").State)
		require.NoError(t, j.Close())
	})
}
