package sqliteledger

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/outlay-go/outlay/budget"
)

// crc guards the numbers by which money is given out: SQLite notices damage of its own
// structures only.
func (p *page) crc() int64 {
	return checksum(p.key, p.id, int64(p.settled), int64(p.presumed), int64(p.held), int64(p.overrun),
		int64(p.floor), p.open, p.unknown)
}

func (a *account) crc(current int64) int64 {
	return checksum(strings.Join([]string{a.budget.Name, a.budget.Unit, a.period, a.zone}, "\n"),
		a.id, int64(a.budget.Limit), int64(a.override), current)
}

func checksum(text string, numbers ...int64) int64 {
	b := make([]byte, 0, 256)
	b = append(b, text...)
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return int64(crc32.ChecksumIEEE(b))
}

// verify fails the transaction if something does not add up.
func (c *conn) verify(ok bool, what, name string) {
	if !ok && c.err == nil {
		c.err = fmt.Errorf("%w: %s %s", errBooks, what, name)
	}
}

// A trend is kept as its numbers in the order of the struct.
func formatTrend(t budget.Trend) string {
	b := strconv.AppendInt(make([]byte, 0, 64), t.Settled, 10)
	for _, s := range t.Spans {
		for _, n := range [...]int64{s.Slot, int64(s.Now), int64(s.Before)} {
			b = strconv.AppendInt(append(b, ' '), n, 10)
		}
	}
	return string(b)
}

// parseTrend reads what formatTrend wrote; a forecast is all that hangs on it.
func parseTrend(s string) (t budget.Trend) {
	fields := strings.Fields(s)
	next := func() (n int64) {
		if len(fields) > 0 {
			n, _ = strconv.ParseInt(fields[0], 10, 64)
			fields = fields[1:]
		}
		return n
	}
	t.Settled = next()
	for i := range t.Spans {
		t.Spans[i] = budget.Span{Slot: next(), Now: budget.Amount(next()), Before: budget.Amount(next())}
	}
	return t
}

// A sum of entries keeps the numbers of its calls, some of which may end later: calls, in
// flight, without evidence, and by how much corrections raised and lowered them.
func formatCounts(s budget.Spending) string {
	return fmt.Sprint(s.Calls, s.Open, s.PresumedCalls, int64(s.Up), int64(s.Down))
}

// parseCounts reads what formatCounts wrote; older versions wrote none.
func parseCounts(text string) (s budget.Spending) {
	_, _ = fmt.Sscan(text, &s.Calls, &s.Open, &s.PresumedCalls, (*int64)(&s.Up), (*int64)(&s.Down))
	return s
}

func formatAlerts(percents []int) string {
	return strings.Trim(fmt.Sprint(percents), "[]")
}

func parseAlerts(s string) []int {
	percents := []int{}
	for f := range strings.FieldsSeq(s) {
		n, _ := strconv.Atoi(f)
		percents = append(percents, n)
	}
	return percents
}
