package sqliteledger

import "fmt"

// applicationID marks a file as a ledger: "outl" in ASCII.
const applicationID = 0x6f75746c

// migrations[i] takes a file from schema version i to i+1. They are only ever appended
// to.
var migrations = [...]string{schema1 + views1, audit2, audit3}

// schema1 has amounts in 10^-9 of the budget's unit and instants in milliseconds since
// 1970.
//
//   - budget: what each budget is, and its limit.
//   - frozen: what operators have stopped; one of the two names is empty.
//   - win: the running totals of each window, the only thing that admission reads.
//     A row is the sum of its entries; crc guards it and the budget against damage.
//   - hold: one row per hold until its id is forgotten. Its legs are the entries from
//     first on, which are written together.
//   - entry: append-only: what happened, who did it and why, and by how much it changed
//     a window.
//   - owner: the open handles. A row whose presence file nobody locks is dead.
//   - alert: thresholds that were crossed and of which nobody was told yet.
const schema1 = `
CREATE TABLE meta(key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE budget(
	id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, label TEXT NOT NULL,
	unit TEXT NOT NULL, period TEXT NOT NULL, zone TEXT NOT NULL, alerts TEXT,
	configured INTEGER NOT NULL, override INTEGER NOT NULL DEFAULT 0,
	current INTEGER, crc INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE provider(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE frozen(
	provider TEXT NOT NULL, budget TEXT NOT NULL, since INTEGER NOT NULL, who TEXT, why TEXT,
	PRIMARY KEY(provider, budget)) STRICT, WITHOUT ROWID;
CREATE TABLE win(
	id INTEGER PRIMARY KEY, budget INTEGER NOT NULL REFERENCES budget, key TEXT NOT NULL,
	oldest TEXT NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL, ends INTEGER NOT NULL,
	settled INTEGER NOT NULL DEFAULT 0, presumed INTEGER NOT NULL DEFAULT 0,
	held INTEGER NOT NULL DEFAULT 0, overrun INTEGER NOT NULL DEFAULT 0,
	floor INTEGER NOT NULL DEFAULT 0, open_holds INTEGER NOT NULL DEFAULT 0,
	presumed_holds INTEGER NOT NULL DEFAULT 0, fired INTEGER NOT NULL DEFAULT 0,
	trend TEXT, crc INTEGER NOT NULL DEFAULT 0, UNIQUE(budget, key)) STRICT;
CREATE TABLE owner(
	id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, opened INTEGER NOT NULL) STRICT;
CREATE TABLE hold(
	boot INTEGER NOT NULL, seq INTEGER NOT NULL, owner INTEGER NOT NULL, provider INTEGER NOT NULL,
	flags INTEGER NOT NULL, at INTEGER NOT NULL, first INTEGER NOT NULL, legs INTEGER NOT NULL,
	state INTEGER NOT NULL, said INTEGER, amount INTEGER, correction INTEGER, ended INTEGER, ref TEXT,
	PRIMARY KEY(boot, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE entry(
	id INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, budget INTEGER, win INTEGER,
	provider INTEGER, boot INTEGER, seq INTEGER,
	settled INTEGER NOT NULL DEFAULT 0, presumed INTEGER NOT NULL DEFAULT 0,
	held INTEGER NOT NULL DEFAULT 0, overrun INTEGER NOT NULL DEFAULT 0, floor INTEGER NOT NULL DEFAULT 0,
	amount INTEGER, budget_name TEXT, provider_name TEXT, who TEXT, why TEXT, ref TEXT) STRICT;
CREATE TABLE alert(
	win INTEGER NOT NULL, percent INTEGER NOT NULL, used INTEGER NOT NULL, top INTEGER NOT NULL,
	owner INTEGER NOT NULL, PRIMARY KEY(win, percent)) STRICT, WITHOUT ROWID;
`

// views1 is for people with a sqlite3 shell: amounts are decimal text, instants are
// readable in UTC and in the time zone of the machine that asks.
var views1 = `
CREATE VIEW budgets AS SELECT
	name, label, key AS "window", unit, period, zone,
	` + utc("start", "from_utc") + utc(`"end"`, "until_utc") + local("start", "from_local") + local(`"end"`, "until_local") +
	decimal("top", `"limit"`) + decimal("settled", "settled") + decimal("presumed", "presumed") + decimal("held", "held") +
	decimal("settled+presumed+held", "used") + decimal("top-settled-presumed-held", "available") +
	decimal("overrun", "overrun") + decimal("floor", "presumed_at_least") + `
	open_holds, presumed_holds, name IN (SELECT budget FROM frozen) AS is_frozen
	FROM (SELECT *, CASE override WHEN 0 THEN configured ELSE override END AS top FROM budget) AS b
	JOIN win ON win.budget=b.id ORDER BY name, key;

CREATE VIEW entries AS SELECT
	e.id, ` + utc("at", "utc") + local("at", "local") + `kind, coalesce(b.name, budget_name) AS budget, key AS "window",
	coalesce(p.name, provider_name) AS provider, CASE WHEN boot IS NOT NULL THEN printf('%x-%x', boot, seq) END AS hold,
	` + decimal("e.settled", "settled") + decimal("e.presumed", "presumed") + decimal("e.held", "held") +
	decimal("e.overrun", "overrun") + decimal("amount", "amount") + `unit, who, why, ref
	FROM entry e LEFT JOIN win w ON w.id=e.win LEFT JOIN budget b ON b.id=e.budget LEFT JOIN provider p ON p.id=e.provider
	ORDER BY e.id;

CREATE VIEW presumed AS SELECT
	printf('%x-%x', h.boot, h.seq) AS hold, p.name AS provider, h.ref, ` + utc("h.at", "utc") + local("h.at", "local") + `
	b.name AS budget, key AS "window",
	` + decimal("CASE WHEN unit='calls' THEN e.held ELSE max(e.held, h.amount) END", "amount") +
	decimal("h.amount", "at_least") + `unit
	FROM hold h JOIN entry e ON e.id BETWEEN h.first AND h.first+h.legs-1
	JOIN win w ON w.id=e.win JOIN budget b ON b.id=w.budget JOIN provider p ON p.id=h.provider
	WHERE h.state=0 ORDER BY h.first, e.id;
`

// decimal, utc and local are columns of a view, each with the comma after it.
func decimal(x, name string) string {
	return fmt.Sprintf(`CASE WHEN %[1]s<0 THEN '-' WHEN %[1]s>=0 THEN '' END || rtrim(rtrim(printf('%%d.%%09d',
		abs(%[1]s)/1000000000, abs(%[1]s)%%1000000000), '0'), '.') AS %[2]s, `, "("+x+")", name)
}

func utc(x, name string) string {
	return fmt.Sprintf("strftime('%%Y-%%m-%%d %%H:%%M:%%S', %s/1000, 'unixepoch') AS %s, ", x, name)
}

func local(x, name string) string {
	return fmt.Sprintf("strftime('%%Y-%%m-%%d %%H:%%M:%%S', %s/1000, 'unixepoch', 'localtime') AS %s, ", x, name)
}
