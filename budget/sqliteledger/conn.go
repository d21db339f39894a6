package sqliteledger

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// conn is a connection with its prepared statements. It is used by one goroutine at a
// time. The first error of a statement sticks until the transaction ends, so that the
// steps of an operation need not check each.
type conn struct {
	*sqlite3.Conn
	stmts map[string]*sqlite3.Stmt
	err   error
}

// dial opens a connection to a file that exists.
func dial(path, vfs string, wait time.Duration) (*conn, error) {
	return dialAs(path, vfs, sqlite3.OPEN_READWRITE, "", wait)
}

func dialAs(path, vfs string, flags sqlite3.OpenFlag, how string, wait time.Duration) (*conn, error) {
	// modeof: the write-ahead log holds the same secrets as the file and gets its mode.
	uri := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "vfs=" + vfs + "&modeof=" + strings.ReplaceAll(url.QueryEscape(path), "+", "%20") + how}
	c, err := sqlite3.OpenFlags(uri.String(), flags|sqlite3.OPEN_URI)
	if err != nil {
		return nil, err
	}
	db := &conn{Conn: c, stmts: map[string]*sqlite3.Stmt{}}
	if err := db.setup(wait); err != nil {
		return nil, errors.Join(err, db.shut())
	}
	return db, nil
}

// setup makes every commit durable: with NORMAL a power loss takes commits back in WAL
// mode. Temporary data stays off the disk.
func (c *conn) setup(wait time.Duration) error {
	if err := c.patience(wait, nil); err != nil {
		return err
	}
	return c.Exec("PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON")
}

// shut closes the connection.
func (c *conn) shut() error {
	for _, s := range c.stmts {
		_ = s.Close() // repeats the error of its last step
	}
	c.stmts = nil
	return c.Close()
}

// patience sets for how long statements wait for other connections, and what tells
// earlier that nobody needs the answer any more; nil: nothing does.
func (c *conn) patience(most time.Duration, wanted func() bool) error {
	var since time.Time
	return c.BusyHandler(func(ctx context.Context, count int) bool {
		if count == 0 {
			since = time.Now()
		}
		if time.Since(since) >= most || (wanted != nil && !wanted()) {
			return false
		}
		// A commit takes some 300 us. Random, so that processes do not march in step.
		time.Sleep(100*time.Microsecond + rand.N(time.Millisecond))
		return ctx.Err() == nil
	})
}

// stmt returns the prepared statement of sql with args bound, or nil after an error.
func (c *conn) stmt(sql string, args ...any) *sqlite3.Stmt {
	if c.err != nil {
		return nil
	}
	s := c.stmts[sql]
	if s == nil {
		if s, _, c.err = c.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT); c.err != nil {
			return nil
		}
		c.stmts[sql] = s
	}
	for i, arg := range args {
		if c.err = bind(s, i+1, arg); c.err != nil {
			return nil
		}
	}
	return s
}

func bind(s *sqlite3.Stmt, i int, arg any) error {
	switch v := arg.(type) {
	case int64:
		return s.BindInt64(i, v)
	case int:
		return s.BindInt64(i, int64(v))
	case bool:
		return s.BindBool(i, v)
	case string:
		if v == "" {
			return s.BindNull(i)
		}
		return s.BindText(i, v)
	default:
		return s.BindNull(i)
	}
}

// exec runs a statement and reports how many rows it changed.
func (c *conn) exec(sql string, args ...any) int64 {
	s := c.stmt(sql, args...)
	if s == nil {
		return 0
	}
	if c.err = s.Exec(); c.err != nil {
		return 0
	}
	return c.Changes()
}

// insert runs an INSERT and returns the id of the row.
func (c *conn) insert(sql string, args ...any) int64 {
	if c.exec(sql, args...) == 0 {
		return 0
	}
	return c.LastInsertRowID()
}

// query calls row for every row of the result.
func (c *conn) query(row func(*sqlite3.Stmt), sql string, args ...any) {
	c.scan(func(s *sqlite3.Stmt) bool { row(s); return true }, sql, args...)
}

// scan calls row for the rows of the result until it returns false.
func (c *conn) scan(row func(*sqlite3.Stmt) bool, sql string, args ...any) {
	s := c.stmt(sql, args...)
	if s == nil {
		return
	}
	for s.Step() && row(s) {
	}
	err := s.Err()
	if reset := s.Reset(); err == nil {
		err = reset
	}
	if c.err == nil { // row may have failed too
		c.err = err
	}
}

// number returns the one number of a query.
func (c *conn) number(sql string, args ...any) (n int64) {
	c.query(func(s *sqlite3.Stmt) { n = s.ColumnInt64(0) }, sql, args...)
	return n
}

// text returns the one text of a query.
func (c *conn) text(sql string, args ...any) (text string) {
	c.query(func(s *sqlite3.Stmt) { text = s.ColumnText(0) }, sql, args...)
	return text
}

// take returns the first error of the statements since the last call, and forgets it.
func (c *conn) take() error {
	err := c.err
	c.err = nil
	return err
}
