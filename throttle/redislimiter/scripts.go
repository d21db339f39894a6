package redislimiter

import (
	"context"
	"crypto/sha1"
	_ "embed" // the scripts are files of their own
	"encoding/hex"
	"slices"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua/head.lua
	head string
	//go:embed lua/plain.lua
	plain string
	//go:embed lua/lib.lua
	lib string
	//go:embed lua/turn.lua
	turnText string
	//go:embed lua/back.lua
	backText string
	//go:embed lua/cap.lua
	capText string
)

// scripts are what the limiter runs.
type scripts struct{ turn, back, cap script }

func newScripts() scripts {
	return scripts{turn: newScript(head + plain + lib + turnText), back: newScript(head + lib + backText), cap: newScript(head + lib + capText)}
}

// script is sent by its hash, and whole if the server does not know it (any more).
type script struct{ text, hash string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text)) // as Redis names scripts
	return script{text: text, hash: hex.EncodeToString(sum[:])}
}

// command is the script's call, as an argument list that can be sent again and again.
func (s script) command(keys []string, args []any) []any {
	all := append(make([]any, 0, 3+len(keys)+len(args)), "evalsha", s.hash, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	return append(all, args...)
}

// run sends a command that the script made. All scripts answer with numbers.
func (s script) run(ctx context.Context, client redis.UniversalClient, command []any) ([]int64, error) {
	c := redis.NewIntSliceCmd(ctx, command...)
	err := client.Process(ctx, c)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		whole := slices.Clone(command)
		whole[0], whole[1] = "eval", s.text
		c = redis.NewIntSliceCmd(ctx, whole...)
		err = client.Process(ctx, c)
	}
	return c.Val(), err
}
