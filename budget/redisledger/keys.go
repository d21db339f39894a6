package redisledger

import (
	"strconv"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// keys are the names of all keys of one ledger. Their common part has the hash tag, so
// that a cluster keeps them in one slot; braces in later parts do not count.
type keys struct {
	generation, owners, frozen, presumed, unattributed, log, watched, index string
	base                                                                    string
}

func newKeys(prefix, name string) keys {
	base := prefix + ":{" + name + "}:"
	return keys{
		generation: base + "generation", owners: base + "owners", frozen: base + "frozen", presumed: base + "presumed",
		unattributed: base + "unattributed", log: base + "log", watched: base + "watched", index: base + "windows", base: base,
	}
}

func (k *keys) account(budget string) string    { return k.base + "budget:" + budget }
func (k *keys) window(budget, id string) string { return k.base + "window:" + budget + ":" + id }
func (k *keys) tally(budget, id string) string  { return k.base + "tally:" + budget + ":" + id }
func (k *keys) hold(id budget.HoldID) string    { return k.base + "hold:" + id.String() }
func (k *keys) holds(owner string) string       { return k.base + "holds:" + owner }
func (k *keys) writes(owner string) string      { return k.base + "writes:" + owner }

// counted appends what a leg is counted in: its account, its windows and its tally.
func (k *keys) counted(names []string, l *leg, windows []string) []string {
	names = append(names, k.account(l.name))
	for _, id := range windows {
		names = append(names, k.window(l.name, id))
	}
	return append(names, k.tally(l.name, l.id))
}

// leg is one budget of a hold and the windows that count against its limit.
type leg struct {
	name   string
	amount budget.Amount
	calls  bool
	id     string // of the window that is charged
	oldest string // of the windows that count
	from   time.Time
	till   time.Time // from and till: when id is charged
	ends   time.Time // when id counts no more
}

func (l *leg) unit() string {
	if l.calls {
		return "c"
	}
	return "m"
}

// windows are the ids of those that count, the charged one last. All but one of a
// rolling period's are told by their start alone.
func (l *leg) windows() []string {
	first, step, ok := rolling(l.oldest, l.id)
	if !ok {
		return []string{l.id}
	}
	ids := make([]string, 0, buckets+1)
	for i := range buckets {
		ids = append(ids, first.Add(time.Duration(i)*step).Format(time.RFC3339))
	}
	return append(ids, l.id)
}

// buckets is how many a rolling period has beside the charged one.
const buckets = 24

// rolling reads the ids of a rolling period: the start of the oldest bucket that counts,
// and the length of one.
func rolling(oldest, id string) (first time.Time, step time.Duration, ok bool) {
	if oldest == id {
		return first, 0, false
	}
	first, err := time.Parse(time.RFC3339, oldest)
	if err != nil {
		return first, 0, false
	}
	last, err := time.Parse(time.RFC3339, id)
	return first.UTC(), last.Sub(first) / buckets, err == nil
}

// at sets the window of the leg.
func (l *leg) at(w budget.Window) {
	l.id, l.oldest, l.from, l.till, l.ends = w.ID, w.Oldest, w.Start, w.End, w.End
	if _, step, ok := rolling(w.Oldest, w.ID); ok {
		l.from, l.ends = w.End.Add(-step), w.End.Add(buckets*step)
	}
}

// How long things are known.
const (
	keepPresumed = 35 * 24 * time.Hour  // presumed holds, from the end of their windows
	keepWindows  = 400 * 24 * time.Hour // totals, from the end of their windows
	maxBuckets   = 1000                 // windows of one rolling period
)

// expires is when the totals of the leg's window may be forgotten.
func (l *leg) expires() time.Time {
	if _, step, ok := rolling(l.oldest, l.id); ok && step < keepWindows/maxBuckets {
		return l.ends.Add(maxBuckets * step)
	}
	return l.ends.Add(keepWindows)
}

// contents tells two holds of one id apart; the provider comes last, since it may
// contain anything.
func contents(h *budget.Hold) string {
	var b strings.Builder
	flag(&b, h.Critical)
	flag(&b, h.Assumed)
	b.WriteString(strconv.Itoa(len(h.Legs)))
	for i := range h.Legs {
		l := &h.Legs[i]
		b.WriteByte('\n')
		b.WriteString(l.Budget.Name)
		b.WriteByte('\n')
		b.WriteString(strconv.FormatInt(int64(l.Amount), 10))
		b.WriteByte('\n')
		flag(&b, l.Budget.Unit == budget.Calls)
	}
	b.WriteByte('\n')
	b.WriteString(h.Provider)
	return b.String()
}

func flag(b *strings.Builder, set bool) {
	if set {
		b.WriteByte('1')
		return
	}
	b.WriteByte('0')
}

// windowsOf writes down where a hold was charged.
func windowsOf(legs []leg) string {
	var b strings.Builder
	for i := range legs {
		l := &legs[i]
		b.WriteString(l.id + "\n" + l.oldest + "\n" + millis(l.ends) + "\n")
	}
	return b.String()
}

// parseHold reads what contents and windowsOf wrote.
func parseHold(text, windows string) (provider string, legs []leg, ok bool) {
	if len(text) < 3 {
		return "", nil, false
	}
	count, rest, _ := strings.Cut(text[2:], "\n")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 {
		return "", nil, false
	}
	parts, where := strings.SplitN(rest, "\n", 3*n+1), strings.Split(windows, "\n")
	if len(parts) != 3*n+1 || len(where) != 3*n+1 {
		return "", nil, false
	}
	legs = make([]leg, n)
	for i := range legs {
		amount, errAmount := strconv.ParseInt(parts[3*i+1], 10, 64)
		ends, errEnds := strconv.ParseInt(where[3*i+2], 10, 64)
		if errAmount != nil || errEnds != nil {
			return "", nil, false
		}
		legs[i] = leg{
			name: parts[3*i], amount: budget.Amount(amount), calls: parts[3*i+2] == "1",
			id: where[3*i], oldest: where[3*i+1], ends: time.UnixMilli(ends),
		}
	}
	return parts[3*n], legs, true
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
