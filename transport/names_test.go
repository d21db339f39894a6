package transport_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// namesOf are books that remember the names of budgets that they were asked for.
type namesOf struct {
	*budget.Memory
	names []string
}

func (n *namesOf) Hold(ctx context.Context, h budget.Hold) (budget.Report, error) {
	for _, l := range h.Legs {
		n.names = append(n.names, l.Budget.Name+" "+l.Budget.Label)
	}
	return n.Memory.Hold(ctx, h)
}

// What a request gives as a name may be a person's: the books know a hash, by their own key.
func TestNamesFromRequestsAreHashesInTheBooks(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		books := &namesOf{Memory: new(budget.Memory)}
		w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
			c.Ledger = books
			p.Budgets, p.BudgetsFor = nil, func(*http.Request, budget.Quote) []budget.Budget {
				return []budget.Budget{{Name: "maria", Limit: 2 * budget.Unit, Every: budget.Day}}
			}
		})
		for range 2 {
			_, err := w.get()
			require.NoError(t, err)
		}
		require.Len(t, books.names, 2)
		require.Equal(t, books.names[0], books.names[1])
		require.Regexp(t, "^api-[0-9a-f]{32} per_call$", books.names[0])
		seen[books.names[0]] = true
	}
	require.Len(t, seen, 2, "the same name in other books is another hash")
}

// movedKey is a ledger that found the key of its books only later.
type movedKey struct {
	namesOf
	key string
}

func (m *movedKey) Key() []byte { return []byte(m.key) }

func TestNamesFromRequestsFollowTheKey(t *testing.T) {
	books := &movedKey{namesOf{Memory: new(budget.Memory)}, "of an empty store"}
	w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
		c.Ledger = books
		p.Budgets, p.BudgetsFor = nil, func(*http.Request, budget.Quote) []budget.Budget {
			return []budget.Budget{{Name: "maria", Limit: 2 * budget.Unit, Every: budget.Day}}
		}
	})
	for range 2 {
		_, err := w.get()
		require.NoError(t, err)
		books.key = "of all the others"
	}
	require.NotEqual(t, books.names[0], books.names[1])
}
