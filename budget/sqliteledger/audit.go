package sqliteledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/outlay-go/outlay/budget"
)

var _ budget.Auditor = (*Ledger)(nil)

// byPeople picks the entries that people made, by what calls made; the index of people has
// them alone. A list of kinds would be put in a table of its own for each entry that is
// written, which took a seventh of all the time of many callers.
const byPeople = `kind<>'held' AND kind<>'settled' AND kind<>'voided' AND kind<>'presumed' AND kind<>'compacted'`

// audit2 lets what people did be found among millions of entries, and keeps the limit
// that another one replaced. Outcomes have there the state that another one replaced.
const audit2 = `
CREATE INDEX people ON entry(id) WHERE kind IN ('limit','configured','freeze','release','corrected','adjusted','noted','denied');
ALTER TABLE entry ADD COLUMN was INTEGER;
`

// audit3 makes that index one that costs calls nothing.
const audit3 = `
DROP INDEX people;
CREATE INDEX people ON entry(id) WHERE ` + byPeople + `;
`

// Audit implements [budget.Auditor]. Entries of people are never compacted.
func (l *Ledger) Audit(ctx context.Context, after string, limit int) ([]budget.Audited, error) {
	from, order := int64(0), "ASC"
	if after == "" {
		order = "DESC"
	} else {
		var err error
		if from, err = strconv.ParseInt(after, 10, 64); err != nil || from < 0 {
			return nil, fmt.Errorf("sqliteledger: no entry has the id %q", after)
		}
	}
	var all []budget.Audited
	err := l.view(ctx, func(b *books) { all = b.audited(from, order, min(max(limit, 1), 1000)) })
	if order == "DESC" {
		slices.Reverse(all)
	}
	return all, err
}

// actions are what the kinds of entries are called; others are themselves.
var actions = map[string]string{"corrected": "correct", "adjusted": "adjust"}

// audited reads entries of people. A correction is one entry a budget; here it is one,
// with what it changed in money.
func (b *books) audited(from int64, order string, limit int) (all []budget.Audited) {
	amount := func(s *sqlite3.Stmt, col int) string {
		if s.ColumnType(col) == sqlite3.NULL {
			return ""
		}
		return budget.Amount(s.ColumnInt64(col)).String()
	}
	b.query(func(s *sqlite3.Stmt) {
		kind := s.ColumnText(2)
		a := budget.Audited{
			ID: s.ColumnText(0), At: instant(s, 1), By: budget.By{Who: s.ColumnText(3), Why: s.ColumnText(4)},
			Action: cmp.Or(actions[kind], kind), Target: budget.Target{Provider: s.ColumnText(5), Budget: s.ColumnText(6)},
			Hold: budget.HoldID{Boot: uint64(s.ColumnInt64(7)), Seq: uint64(s.ColumnInt64(8))},
			From: amount(s, 9), To: amount(s, 10), Denied: kind == "denied",
		}
		if kind == "noted" || kind == "denied" {
			a.Action, a.From, _ = strings.Cut(s.ColumnText(12), "\n")
			a.From, a.To, _ = strings.Cut(a.From, "\n")
		}
		if kind == "corrected" || kind == "adjusted" {
			a.From, a.To = "", amount(s, 11)
		}
		if kind == "corrected" {
			a.Target.Budget = "" // it concerns all budgets of the hold
		}
		all = append(all, a)
	}, `SELECT e.id, at, kind, who, why, coalesce(p.name, e.provider_name), coalesce(b.label, n.label, e.budget_name), boot, seq,
			was, amount, e.settled+e.presumed, ref
		FROM entry e LEFT JOIN budget b ON b.id=e.budget LEFT JOIN budget n ON n.name=e.budget_name LEFT JOIN provider p ON p.id=e.provider
		WHERE e.id>? AND `+byPeople+` AND (kind<>'corrected' OR who IS NOT NULL AND NOT EXISTS (
			SELECT 1 FROM entry f JOIN budget g ON g.id=f.budget WHERE f.id BETWEEN e.id-64 AND e.id+64
			AND f.kind=e.kind AND f.boot=e.boot AND f.seq=e.seq AND f.at=e.at
			AND (g.unit<>'calls', -f.win)>(b.unit<>'calls', -e.win)))
		ORDER BY e.id `+order+` LIMIT ?`, from, limit)
	return all
}

// Note implements [budget.Auditor].
func (l *Ledger) Note(ctx context.Context, a budget.Audited) error {
	kind := "noted"
	if a.Denied {
		kind = "denied"
	}
	ref := a.Action
	if a.From != "" || a.To != "" {
		ref += "\n" + a.From + "\n" + a.To
	}
	return l.do(ctx, func(b *books) error {
		b.lastEntry++
		b.exec(`INSERT INTO entry(id, at, kind, budget_name, provider_name, boot, seq, who, why, ref) VALUES(?,?,?,?,?,nullif(?,0),nullif(?,0),?,?,?)`,
			b.lastEntry, b.now.UnixMilli(), kind, a.Target.Budget, a.Target.Provider, int64(a.Hold.Boot), int64(a.Hold.Seq), a.By.Who, a.By.Why, ref)
		return b.err
	})
}
