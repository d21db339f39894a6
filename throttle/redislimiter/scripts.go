package redislimiter

import (
	_ "embed" // the scripts are files of their own

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua/lib.lua
	lib string
	//go:embed lua/turn.lua
	turnText string
	//go:embed lua/back.lua
	backText string
	//go:embed lua/cap.lua
	capText string
)

// scripts are what the limiter runs. Each is sent by its hash, and whole if the server
// does not know it (any more).
type scripts struct{ turn, back, cap *redis.Script }

func newScripts() scripts {
	s := func(text string) *redis.Script { return redis.NewScript(lib + text) }
	return scripts{turn: s(turnText), back: s(backText), cap: s(capText)}
}
