package main

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// instructions are the lines of the Dockerfile, continued ones joined, by stage.
func instructions(t *testing.T) (all []string) {
	t.Helper()
	b, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	for line := range strings.Lines(strings.ReplaceAll(string(b), "\\\n", "")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// There is no docker here: what the Dockerfile does is done without it, in a copy of what it
// copies, with the Go version that it names, and what it starts is there and starts.
func TestTheDockerfileBuilds(t *testing.T) {
	root := filepath.Join("..", "..")
	all := instructions(t)
	version := regexp.MustCompile(`(?m)^go (1\.\d+)`)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	require.Equal(t, "FROM golang:"+version.FindStringSubmatch(string(mod))[1]+" AS build", all[0])

	out := t.TempDir()
	made := map[string]bool{}
	for _, line := range all {
		words := strings.Fields(line)
		switch {
		case words[0] == "COPY" && strings.HasPrefix(words[1], "--from=build"):
			from := words[len(words)-2]
			assert.True(t, made[from], "%s is not made by the stage before", from)
		case words[0] == "COPY":
			for _, from := range words[1 : len(words)-1] {
				_, err := os.Stat(filepath.Join(root, from))
				assert.NoError(t, err, line)
			}
		case words[0] == "RUN" && strings.Contains(line, "go build"):
			script := strings.TrimPrefix(line, "RUN ")
			for _, name := range regexp.MustCompile(`(?:-o|mkdir -m 0700) (/[a-z-]+)`).FindAllStringSubmatch(script, -1) {
				made[name[1]] = true
				script = strings.ReplaceAll(script, " "+name[1], " "+filepath.Join(out, name[1]))
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
			cmd.Dir = root
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", said)
		case words[0] == "HEALTHCHECK", words[0] == "ENTRYPOINT", words[0] == "CMD":
			for _, name := range regexp.MustCompile(`"(/outlay[^"]*)"`).FindAllStringSubmatch(line, -1) {
				assert.True(t, made[name[1]], "%s starts what is not made", line)
			}
		}
	}
	require.Len(t, made, 2)
	info, err := os.Stat(filepath.Join(out, "spend"))
	require.NoError(t, err)
	assert.EqualValues(t, 0o700, info.Mode().Perm())
	for _, line := range all {
		if args, ok := strings.CutPrefix(line, "CMD ["); ok { // those of the image, with a file that is there
			args = strings.NewReplacer("\"run\"", "check", "/etc/outlay/outlay.yaml", "minimal.yaml", "\"", "", ",", "", "]", "").Replace(args)
			said, err := exec.CommandContext(t.Context(), path.Join(out, "outlay-gateway"), strings.Fields(args)...).CombinedOutput()
			require.NoError(t, err, "%s", said)
			assert.Contains(t, string(said), "good; providers: 1")
		}
	}
}
