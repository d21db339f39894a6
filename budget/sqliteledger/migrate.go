package sqliteledger

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"os"

	"github.com/ncruces/go-sqlite3"
)

// prepareSchema makes a ledger of a new file, brings an older one up to date, and
// refuses what is no ledger or a newer one.
func (c *conn) prepareSchema(path string) error {
	if err := c.checkSchema(path); err != nil {
		return err
	}
	if err := c.Exec("PRAGMA journal_mode=WAL"); err != nil {
		return err
	}
	c.exec("BEGIN IMMEDIATE")
	if err := c.take(); err != nil {
		return err
	}
	err := c.migrate(path)
	if err == nil {
		c.exec("COMMIT")
		err = c.take()
	}
	if err != nil {
		c.exec("ROLLBACK")
		_ = c.take()
	}
	return err
}

// checkSchema changes nothing.
func (c *conn) checkSchema(path string) error {
	id, version := c.number("PRAGMA application_id"), c.number("PRAGMA user_version")
	tables := c.number("SELECT count(*) FROM sqlite_schema")
	if err := c.take(); err != nil {
		return err
	}
	switch {
	case id == 0 && version == 0 && tables == 0:
		return nil
	case id != applicationID:
		return &Error{Path: path, Fault: Foreign, Err: fmt.Errorf("an SQLite file of another program (application_id %#x)", id)}
	case version > int64(len(migrations)):
		return &Error{Path: path, Fault: NewerSchema, Err: fmt.Errorf("schema version %d, this is version %d", version, len(migrations))}
	}
	return nil
}

// migrate runs within a transaction: another process may have been faster.
func (c *conn) migrate(path string) error {
	if err := c.checkSchema(path); err != nil {
		return err
	}
	version := c.number("PRAGMA user_version")
	if err := c.take(); err != nil {
		return err
	}
	for _, sql := range migrations[version:] {
		if err := c.Exec(sql); err != nil {
			return err
		}
	}
	if version == 0 {
		c.exec("INSERT INTO meta(key, value) VALUES('ledger', ?), ('key', ?)", fmt.Sprintf("%08x", mathrand.Uint32()), rand.Text())
	}
	c.exec(fmt.Sprintf("PRAGMA application_id=%d", applicationID))
	c.exec(fmt.Sprintf("PRAGMA user_version=%d", len(migrations)))
	return c.take()
}

// wholeCheck is the size up to which a file is checked whole when it is opened. Of a
// larger one the parts that grant money are, and each row of totals when it is read;
// Verify checks all of it.
const wholeCheck = 16 << 20

// examine looks for damage.
func (c *conn) examine(path string) error {
	checks := []string{"PRAGMA quick_check(1)"}
	if info, err := os.Stat(path); err == nil && info.Size() > wholeCheck {
		checks = []string{"PRAGMA quick_check('budget')", "PRAGMA quick_check('win')", "PRAGMA quick_check('owner')", "PRAGMA quick_check('provider')"}
	}
	for _, sql := range checks {
		c.query(func(s *sqlite3.Stmt) {
			if text := s.ColumnText(0); text != "ok" && c.err == nil {
				c.err = fmt.Errorf("%w: %s", sqlite3.CORRUPT, text)
			}
		}, sql)
	}
	return c.take()
}
