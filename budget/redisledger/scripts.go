package redisledger

import (
	_ "embed" // the scripts are files of their own

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua/lib.lua
	lib string
	//go:embed lua/tally.lua
	tally string
	//go:embed lua/index.lua
	index string
	//go:embed lua/begin.lua
	beginText string
	//go:embed lua/configure.lua
	configureText string
	//go:embed lua/hold.lua
	holdText string
	//go:embed lua/resolve.lua
	resolveText string
	//go:embed lua/report.lua
	reportText string
	//go:embed lua/beat.lua
	beatText string
	//go:embed lua/bury.lua
	buryText string
	//go:embed lua/totals.lua
	totalsText string
	//go:embed lua/operate.lua
	operateText string
	//go:embed lua/history.lua
	historyText string
)

// scripts are what the ledger runs. Each is sent by its hash, and whole if the server
// does not know it (any more).
type scripts struct {
	begin, configure, hold, resolve, report, beat, bury, totals, operate, history *redis.Script
}

// newScripts makes them; clock is what comes first in each, for tests.
func newScripts(clock string) scripts {
	s := func(text string) *redis.Script { return redis.NewScript(clock + lib + text) }
	return scripts{
		begin: s(beginText), configure: s(configureText), hold: s(tally + index + holdText), resolve: s(tally + resolveText), report: s(index + reportText),
		beat: s(beatText), bury: s(buryText), totals: s(totalsText), operate: s(operateText), history: s(historyText),
	}
}
