package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// tokenCommand prints a token of letters and digits, which every SDK takes for a key, and
// its hash. A prefix is for SDKs that look at the beginning of a key, such as AIza.
func tokenCommand(_ context.Context, c *invocation) (int, error) {
	prefix := c.set.String("prefix", "", "what the token begins with, such as AIza for Google's SDK for Python")
	if _, err := c.parse(); err != nil {
		return misused, errors.Join(errUsage, err)
	}
	if len(*prefix) > 64 || strings.Trim(*prefix, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") != "" {
		return misused, errors.New("a prefix has up to 64 letters, digits, _, . and -")
	}
	token := *prefix + rand.Text() + rand.Text()[:6] // 160 bits
	sum := sha256.Sum256([]byte(token))
	fmt.Fprintf(c.out, "%s\n", token)
	fmt.Fprintf(c.errs, "the program sends it as its vendor key, or in Outlay-Token; in the configuration write token: env:NAME, or\ntoken_sha256: \"%x\"\n", sum)
	return done, nil
}

// versionCommand prints what the program was built of.
func versionCommand(_ context.Context, c *invocation) (int, error) {
	asJSON := c.set.Bool("json", false, "as JSON")
	if _, err := c.parse(); err != nil {
		return misused, errors.Join(errUsage, err)
	}
	v := map[string]string{"version": "(devel)", "go": runtime.Version(), "os": runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		v["version"] = or(info.Main.Version, v["version"])
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v["commit"] = s.Value
			case "vcs.time":
				v["time"] = s.Value
			}
		}
	}
	if *asJSON {
		return done, json.NewEncoder(c.out).Encode(v)
	}
	fmt.Fprintf(c.out, "outlay-gateway %s %s %s %s\n", v["version"], or(v["commit"], "no commit"), v["go"], v["os"])
	return done, nil
}

// ask asks for a status.
func ask(ctx context.Context, url string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return failed, err
	}
	resp, err := (&http.Client{Transport: &http.Transport{}}).Do(r) // no proxy of the environment
	if err != nil {
		return failed, err
	}
	_ = resp.Body.Close() // the status says it all
	if resp.StatusCode != http.StatusOK {
		return failed, fmt.Errorf("it answers %d", resp.StatusCode)
	}
	return done, nil
}
