package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// fast is how many times the rates are multiplied in tests. The pauses that the vendors
// ask for stay as they are, in whole seconds.
const fast = 20

// TestBooksAgreeWithInvoices does all of the work for several seeds: three, or fifty in
// the long proof.
func TestBooksAgreeWithInvoices(t *testing.T) {
	seeds := 3
	if os.Getenv("OUTLAY_PROVE") != "" {
		seeds = 50
	}
	var agreed atomic.Int32
	t.Run("seeds", func(t *testing.T) {
		for seed := 1; seed <= seeds; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				var out, errs bytes.Buffer
				code := start(t.Context(), []string{"-seed", fmt.Sprint(seed)}, fast, &out, &errs)
				require.Zero(t, code, "%s%s", out.String(), errs.String())
				require.Empty(t, errs.String())
				require.NotContains(t, out.String(), "WRONG")
				// Three lines about messages, two about addresses.
				require.Equal(t, 5, strings.Count(out.String(), "\n  ok "), out.String())
				agreed.Add(1)
			})
		}
	})
	t.Logf("prove: %d of %d seeds: settled <= invoice <= settled + presumed, corrected books = invoice to the nano, no message twice", agreed.Load(), seeds)
}

func TestTheBudgetStopsTheMessages(t *testing.T) {
	t.Parallel()
	rows, _, err := parseCSV(defaultMessages, messageFile)
	require.NoError(t, err)
	s := texts(options{seed: 3, speed: fast}, rows)
	var out bytes.Buffer
	ledger := new(budget.Memory)
	agree, err := run(t.Context(), options{}, ledger, []*service{s}, &out, &out)
	require.NoError(t, err)
	require.True(t, agree, out.String())
	sum := s.summary()
	require.InDelta(t, 250, len(rows)-sum.ends[refused], 15, "messages that a day's budget lets out")
	require.Equal(t, sum.ends[refused], sum.reasons["exhausted"]+sum.reasons["busy"])
	require.LessOrEqual(t, s.fake.Invoice().Total, smsPerDay)
	require.Positive(t, sum.throttled)
	require.Positive(t, sum.retried)
}

// TestWrongBooksAreFound: the checks are worth something only if they can fail.
func TestWrongBooksAreFound(t *testing.T) {
	rows := []row{{2, "+12025550123", "Hello"}, {3, "+12025550124", "Hello"}}
	tests := []struct {
		name  string
		price budget.Amount
		want  string
	}{
		{"the vendor is dearer than our price", 2 * smsSegment, "WRONG settled 0.0166 <= invoice 0.0332 <= settled + presumed 0.0166"},
		{"the vendor is cheaper than our price", smsSegment / 2, "WRONG settled 0.0166 <= invoice 0.0083 <= settled + presumed 0.0166"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := texts(options{speed: fast}, rows)
			s.fake.Close()
			s.fake = vendortest.NewSMS(vendortest.Options{Price: tt.price})
			var out bytes.Buffer
			agree, err := run(t.Context(), options{}, new(budget.Memory), []*service{s}, &out, &out)
			require.NoError(t, err)
			require.False(t, agree)
			require.Contains(t, out.String(), tt.want)
		})
	}
}

func TestAMessageSentTwiceIsFound(t *testing.T) {
	s := texts(options{speed: fast}, []row{{2, "+12025550123", "Hello"}, {3, "+12025550123", "Hello"}})
	s.fake.Close()
	s.fake = vendortest.NewSMS(vendortest.Options{Price: smsSegment})
	var out bytes.Buffer
	agree, err := run(t.Context(), options{}, new(budget.Memory), []*service{s}, &out, &out)
	require.NoError(t, err)
	require.False(t, agree)
	require.Contains(t, out.String(), "WRONG sent twice: 1")
}

func TestExitStatus(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	messages := write("messages.csv", "to,text\n+12025550123,Hello\nno number,Hello\n+12025550124,Bye\n")
	addresses := write("addresses.csv", "address\n\"Pariser Platz, Berlin\"\n")
	empty := write("empty.csv", "")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name string
		ctx  context.Context
		args []string
		code int
		errs string
	}{
		{"rows that make no sense are left out", t.Context(), []string{"-messages", messages, "-addresses", addresses}, 0, "messages.csv:3: to is no number"},
		{"help", t.Context(), []string{"-h"}, 0, "-seed"},
		{"unknown flag", t.Context(), []string{"-sed", "1"}, 2, "flag provided but not defined: -sed"},
		{"argument", t.Context(), []string{"mine.csv"}, 2, `unexpected argument "mine.csv"`},
		{"no such file", t.Context(), []string{"-addresses", dir + "/none.csv"}, 2, "none.csv: no such file"},
		{"no usable row", t.Context(), []string{"-messages", empty}, 2, "empty.csv: no heading with to and text"},
		{"interrupted", gone, []string{"-messages", messages, "-addresses", addresses}, 1, "context canceled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := start(tt.ctx, tt.args, fast, &out, &errs)
			require.Equal(t, tt.code, code, "%s%s", out.String(), errs.String())
			require.Contains(t, errs.String(), tt.errs)
		})
	}
}

// A ledger file goes on where it stopped: the second run finds the day's money spent.
func TestLedgerFileGoesOnWhereItStopped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spend.db")
	refused := regexp.MustCompile(`(?m)^  refused +(\d+)`)
	var first, second bytes.Buffer
	require.Zero(t, start(t.Context(), []string{"-ledger", file}, fast, &first, io.Discard), first.String())
	require.Zero(t, start(t.Context(), []string{"-ledger", file}, fast, &second, io.Discard), second.String())
	before, err := strconv.Atoi(refused.FindStringSubmatch(first.String())[1])
	require.NoError(t, err)
	after, err := strconv.Atoi(refused.FindStringSubmatch(second.String())[1])
	require.NoError(t, err)
	require.Less(t, before, 200)
	require.Greater(t, after, 300)

	var errs bytes.Buffer
	require.Equal(t, 2, start(t.Context(), []string{"-ledger", filepath.Join(file, "nowhere")}, fast, io.Discard, &errs))
	require.Contains(t, errs.String(), "nowhere")
}
