package sqliteledger

import (
	"context"

	"github.com/ncruces/go-sqlite3"
)

// Others is how many other handles have the file open, in this process or another one. It
// reads, and changes nothing.
func (l *Ledger) Others(ctx context.Context) (n int, err error) {
	var owners []int64
	err = l.read(ctx, func(c *conn) {
		b := newView(c)
		b.query(func(s *sqlite3.Stmt) { owners = append(owners, s.ColumnInt64(0)) }, "SELECT id FROM owner WHERE id<>?", l.books.owner)
	})
	for _, owner := range owners {
		if !dead(l.books.dir, owner) {
			n++
		}
	}
	return n, err
}
