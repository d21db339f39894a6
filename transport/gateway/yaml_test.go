package gateway

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const small = `version: 1
ledger: {kind: memory, allow_forgetting: true}
providers:
  api: {upstream: "https://api.example.com"}
`

func TestFilesThatAreReadAllTheSame(t *testing.T) {
	for name, text := range map[string]string{
		"as it is":                 small,
		"byte order mark":          "\ufeff" + small,
		"carriage returns":         strings.ReplaceAll(small, "\n", "\r\n"),
		"no line end":              strings.TrimSuffix(small, "\n"),
		"document marks":           "---\n" + small + "...\n",
		"a directive":              "%YAML 1.2\n---\n" + small,
		"comments with tabs":       "# a\tb\n\t# c\n" + small + "\t\n",
		"anchors":                  small + "  two: {upstream: \"https://two.example.com\", rates: &r [10/s]}\n  three: {upstream: \"https://three.example.com\", rates: *r}\n",
		"merged tables":            small + "  two: &two\n    upstream: https://two.example.com\n    rates: [10/s]\n  three:\n    <<: *two\n    path: /other\n",
		"flow tables over lines":   small + "  two: {\n    upstream: \"https://two.example.com\",\n    rates: [10/s,\n      600/min burst 20]\n  }\n",
		"explicit keys":            small + "  ? two\n  : {upstream: \"https://two.example.com\"}\n",
		"yes is a text, not true":  small + "  yes: {upstream: \"https://two.example.com\"}\n",
		"defaults for all":         small + "defaults: {rates: [5/s], retry: {attempts: 2}}\n",
		"a provider in quotes":     small + "  'two': {upstream: 'https://two.example.com', rates: ['10/s']}\n",
		"a folded text as a value": small + "  two:\n    upstream: >-\n      https://two.example.com\n",
	} {
		f, problems := told(t, text)
		assert.NotNil(t, f, "%s: %v", name, problems)
		assert.Empty(t, problems, name)
	}
}

func TestFilesThatAreNotRead(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":                {"", "outlay.yaml:1:1: the file is empty: begin with version: 1"},
		"comments only":        {"# version: 1\n", "outlay.yaml:1:1: the file is empty: begin with version: 1"},
		"a list":               {"- a\n", "outlay.yaml:1:1: the file must be a table of keys and values, not a list"},
		"one word":             {"outlay\n", "outlay.yaml:1:1: the file must be a table of keys and values, not one value"},
		"binary":               {"version: 1\n\x00\x01", "outlay.yaml:2:1: a control character (byte 0x00): this is no text"},
		"Latin-1":              {"version: 1\n# Stra\xdfe\n", "outlay.yaml:2:1: this line is not UTF-8: save the file in that encoding"},
		"an open list":         {"version: 1\nhosts: [a\n", "outlay.yaml:2:8: a list that begins here is not closed: write ]"},
		"an open table":        {"version: 1\nlog: {level: info\n", "outlay.yaml:2:6: a table that begins here is not closed: write }"},
		"an open quote":        {"version: 1\nhosts: ['a]\n", "outlay.yaml:2:9: a quoted text that begins here has no end: write the closing quote"},
		"a second colon":       {"version: 1\nadmin: token: x\n", "outlay.yaml:2:8: a second colon in one line: put the value in quotes"},
		"reserved":             {"version: 1\nhosts: [@a]\n", "outlay.yaml:2:9: a value cannot begin with this character: put it in quotes"},
		"an unknown alias":     {small + "defaults: *none\n", "outlay.yaml:5:11: an alias of an anchor that is not above it: define it with & first"},
		"a tag":                {small + "shutdown: !!str 30s\n", "outlay.yaml:5:11: tags (!!) have no meaning here: remove it"},
		"a key without value":  {small + "shutdown:\n", "outlay.yaml:5:11: shutdown has no value: write one, or remove the key"},
		"a table as key":       {small + "? {a: b}\n: c\n", "outlay.yaml:6:1: a key must be plain text"},
		"nested":               {small + "hosts: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n", "outlay.yaml:5:72: more than 64 levels of nesting: this is no configuration"},
		"nested dashes":        {small + "hosts:\n" + strings.Repeat("- ", 100) + "a\n", "outlay.yaml:6:129: more than 64 levels of nesting: this is no configuration"},
		"a merge of no table":  {small + "  two:\n    <<: [a]\n    upstream: https://two.example.com\n", "outlay.yaml:6:10: << merges tables, and this is none"},
		"no providers":         {"version: 1\nledger: {kind: memory, allow_forgetting: true}\nproviders:\n", "outlay.yaml:3:1: there are no providers: write providers: {twilio: {preset: twilio}}"},
		"neither preset nor":   {strings.Replace(small, `upstream: "https://api.example.com"`, "", 1), "outlay.yaml:4:3: api has neither preset nor upstream: write upstream: https://api.example.com"},
		"no scheme":            {strings.Replace(small, "https://", "", 1), `outlay.yaml:4:19: upstream "api.example.com" is no address: write https://api.example.com`},
		"a password":           {strings.Replace(small, "https://", "https://me:secret-of-mine@", 1), "outlay.yaml:4:19: upstream holds a user or a password: write credential: {basic: {user: ..., password: env:NAME}}"},
		"a customer's host":    {strings.Replace(small, `upstream: "https://api.example.com"`, "preset: zendesk", 1), "outlay.yaml:4:3: api has no upstream, and every customer of this vendor has a host of their own: write upstream: https://api.example.com"},
		"a signed vendor":      {strings.Replace(small, `upstream: "https://api.example.com"`, "preset: aws-sns", 1), "outlay.yaml:4:17: preset aws-sns: requests are signed for the vendor's own host, so that no gateway can pass them on: use the library in the program"},
		"a number for a name":  {strings.Replace(small, "  api:", "  0044:", 1), `outlay.yaml:4:3: provider 36 is a number to YAML (you wrote 0044): put it in quotes, "0044"`},
		"money without price":  {strings.Replace(small, `com"`, `com", budgets: {d: {limit: 5 USD, every: day}}`, 1), "outlay.yaml:4:3: budget d is in money, and api has no price: write price: 0.005 USD, or price: free"},
		"a default of one":     {small + "defaults: {path: /x}\n", "outlay.yaml:5:12: defaults cannot give a path: every provider has one of its own"},
		"a caller without":     {small + "callers: {shop: {}}\n", `outlay.yaml:5:11: caller "shop" has no token: write token: env:NAME, or token_sha256 as outlay-gateway token prints it`},
		"a short token":        {small + "callers: {shop: {token: \"plain:secret\"}}\n", "outlay.yaml:5:25: callers.shop.token has 6 characters: it needs 16 to 256; outlay-gateway token makes one"},
		"an unset variable":    {small + "callers: {shop: {token: env:NOWHERE}}\n", "outlay.yaml:5:25: callers.shop.token: environment variable NOWHERE is not set"},
		"a missing file":       {small + "callers: {shop: {token: file:/nowhere/at/all}}\n", "outlay.yaml:5:25: callers.shop.token: file /nowhere/at/all cannot be read: no such file or directory"},
		"a folder as secret":   {small + "callers: {shop: {token: file:/}}\n", "outlay.yaml:5:25: callers.shop.token: file / is no regular file"},
		"an admin for all":     {small + "admin: {address: 0.0.0.0:8786}\n", "outlay.yaml:5:18: admin listens on 0.0.0.0:8786, which other machines can reach, without a token: set admin.token, or listen on 127.0.0.1"},
		"a listener for none":  {small + "listen: [{address: 127.0.0.1:1, auth: token}]\n", "outlay.yaml:5:39: 127.0.0.1:1 asks callers for a token, and no caller has one: write callers: {NAME: {token: env:NAME}}"},
		"the same address":     {small + "listen: [{address: 127.0.0.1:1}, {address: 127.0.0.1:1}]\n", "outlay.yaml:5:44: two listeners share the address 127.0.0.1:1: give each a port of its own"},
		"a listener for other": {small + "listen: [{address: 127.0.0.1:1, provider: apy}]\n", `outlay.yaml:5:43: listen names the provider "apy", which is not there: did you mean "api"?`},
		"tokens without burst": {strings.Replace(small, `com"`, `com", scopes: [{by: json model, rates: [90000/min], weight: units}]`, 1), `outlay.yaml:4:100: scope "json model" counts units such as tokens: its rates need a burst of at least one call's units, such as 90000/min burst 90000`},
		"two currencies":       {strings.Replace(small, `com"`, `com", price: {per: call, table: {"GET /a": 1 USD, "GET /b": 1 EUR}}`, 1), "outlay.yaml:4:100: api.price mixes USD and EUR: a provider bills in one currency"},
	} {
		f, problems := told(t, c.text)
		assert.Nil(t, f, name)
		assert.Contains(t, problems, c.want, name)
		assert.NotContains(t, strings.Join(problems, "\n"), "secret-of", name)
	}
}

// What follows from a mistake that is told is not told beside it.
func TestAMistakeIsToldOnce(t *testing.T) {
	strict := small + "listen: [{address: 127.0.0.1:1, auth: token}]\n"
	for text, want := range map[string]string{
		"callers: {shop: {token: env:NOWHERE}}\n":          "outlay.yaml:6:25: callers.shop.token: environment variable NOWHERE is not set",
		"callers: {shop: {token: file:/nowhere/at/all}}\n": "outlay.yaml:6:25: callers.shop.token: file /nowhere/at/all cannot be read: no such file or directory",
		"callers: {shop: {token_sha256: \"12\"}}\n":        "outlay.yaml:6:32: callers.shop.token_sha256 is no SHA-256: it has 64 hexadecimal digits, in quotes if they are all decimal",
		"callers: {shop: {}}\n":                            `outlay.yaml:6:11: caller "shop" has no token: write token: env:NAME, or token_sha256 as outlay-gateway token prints it`,
		"callers: {local: {tenant: house}}\n":              "outlay.yaml:5:39: 127.0.0.1:1 asks callers for a token, and no caller has one: write callers: {NAME: {token: env:NAME}}",
	} {
		_, problems := told(t, strict+text)
		assert.Equal(t, []string{want}, problems)
	}
}

func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	require.NoError(t, os.WriteFile(large, bytes.Repeat([]byte("# 0123456\n"), 2<<20/10), 0o600))
	for path, want := range map[string]string{
		dir:                               dir + ": is a folder: name the file in it",
		filepath.Join(dir, "nowhere.yml"): dir + "/nowhere.yml: cannot be read: no such file or directory",
		large:                             large + ": is larger than 1 MiB: this is no configuration",
	} {
		f, problems := Load(path, LoadOptions{})
		assert.Nil(t, f)
		require.Len(t, problems, 1)
		assert.Equal(t, want, problems[0].String())
	}
	if os.Getuid() != 0 {
		locked := filepath.Join(dir, "locked.yaml")
		require.NoError(t, os.WriteFile(locked, []byte(small), 0o000))
		_, problems := Load(locked, LoadOptions{})
		require.Len(t, problems, 1)
		assert.Equal(t, locked+": cannot be read: permission denied", problems[0].String())
	}
}

// What a parser takes much time for is refused in little.
func TestHostileFilesTakeNoTime(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		from, to := string(rune('0'+i)), string(rune('1'+i))
		bomb.WriteString("a" + to + ": &a" + to + " [" + strings.TrimSuffix(strings.Repeat("*a"+from+", ", 10), ", ") + "]\n")
	}
	noise := make([]byte, 1<<16)
	_, _ = rand.Read(noise)
	for name, text := range map[string]string{
		"brackets":  strings.Repeat("[", 1<<18),
		"braces":    strings.Repeat("{", 1<<18),
		"dashes":    strings.Repeat("- ", 1<<17),
		"questions": strings.Repeat("? ", 1<<17),
		"anchors":   strings.Repeat("&a ", 1<<16),
		"aliases":   bomb.String(),
		"noise":     string(noise),
		"indented":  strings.Repeat("a:\n ", 2000),
	} {
		start := time.Now()
		f, problems := told(t, text)
		assert.Nil(t, f, name)
		assert.NotEmpty(t, problems, name)
		assert.Less(t, time.Since(start), 20*time.Second, name)
	}
}

// FuzzLoad: nothing that is in a file makes the loader panic, take long or tell a secret.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"minimal.yaml", "company.yaml", "fleet.yaml"} {
		b, err := os.ReadFile(folder + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add(small + "  two: &t {<<: *t, ? x : y}\ncallers: {shop: {token: plain:planted-secret-1}}\nplain:planted-secret-1: 1\n")
	f.Add("version: 1\nproviders: {a: {price: {per: token, models: {m: {input: 1 USD per 1M}}}, rates: plain:planted-secret-1}}\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "outlay.yaml")
		if os.WriteFile(path, []byte(text), 0o600) != nil {
			t.Skip()
		}
		lookUp := func(string) (string, bool) { return "planted-secret-2", true }
		file, problems := Load(path, LoadOptions{LookupEnv: lookUp})
		if file == nil && len(problems) == 0 {
			t.Error("nothing was loaded, and nobody says why")
		}
		for _, p := range problems {
			marked := strings.Count(text, "planted-secret") == strings.Count(text, "plain:planted-secret-1")
			if marked && strings.Contains(p.String(), "planted-secret") {
				t.Errorf("a problem tells a secret: %s", p)
			}
		}
		if file != nil {
			_ = file.Restart(file)
			if strings.Contains(file.Print(), "planted-secret-2") {
				t.Error("the print tells a secret")
			}
		}
	})
}
