package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/outlay-go/outlay/throttle"
)

// loading is a file on its way to be a [File].
type loading struct {
	*reader
	top  *section
	file *File
	// plans by name, and the plan of each tenant.
	tenants tenants
	// providers in the order of the file, with what the last checks need.
	providers []*loadedProvider
	presets   map[string]preset
}

// load reads a text, section by section.
func (r *reader) load(text []byte) *File {
	f := &File{places: map[string]place{}, owners: map[string]string{}}
	root := parseFile(text, r)
	if root == nil {
		return f
	}
	l := &loading{reader: r, top: r.section(root, "", place{1, 1}), file: f, presets: presets()}
	if root.form != table {
		return f
	}
	l.version()
	l.listen()
	l.admin()
	l.stores()
	l.callers()
	l.readTenants()
	f.Config.Budgets, _ = l.budgets(l.top, "")
	l.file.Config.Buffers, _ = field(l.top, "buffers", parseSize)
	l.readProviders()
	l.rest()
	l.top.done()
	l.check()
	return f
}

func (l *loading) version() {
	n := l.top.get("version")
	switch {
	case n == nil:
		l.errorf(place{1, 1}, "version is missing: begin with version: 1")
	case n.form != scalar || n.text != "1":
		l.errorf(n.place, "version %s is not known: this program reads version: 1", show(n.text))
	}
}

// listen reads the addresses on which programs come in.
func (l *loading) listen() {
	n := l.top.get("listen")
	if n == nil || n.form == absent {
		l.file.Listen = []Listen{{Address: "127.0.0.1:8787"}}
		return
	}
	l.file.places["listen"] = n.place
	if n.form != list {
		l.errorf(n.place, "listen must be a list: write - address: 127.0.0.1:8787")
		return
	}
	if len(n.items) == 0 {
		l.errorf(n.place, "listen is empty, so that nobody could call: leave it out for 127.0.0.1:8787")
	}
	for _, item := range n.items {
		s := l.section(item, "listen", item.place)
		l.file.Listen = append(l.file.Listen, l.listener(s))
		s.done()
	}
}

func (l *loading) listener(s *section) (out Listen) {
	out.Address = l.address(s, "address", "127.0.0.1:8787")
	local := isLoopback(out.Address)
	tls := s.sub("tls")
	out.Cert, _ = field(tls, "cert", parseText)
	out.Key, _ = field(tls, "key", parseText)
	if !tls.empty && (out.Cert == "" || out.Key == "") {
		l.errorf(tls.at, "tls needs both: cert and key, the names of two files")
	}
	out.Cert, out.Key = l.beside(out.Cert), l.beside(out.Key)
	l.lookFor(out.Cert, tls.whereIs("cert"), "tls.cert: the file", "write its name")
	l.lookFor(out.Key, tls.whereIs("key"), "tls.key: the file", "write its name")
	tls.done()
	auth, at := field(s, "auth", oneOf("none", "token"))
	out.Token = auth == "token" || auth == "" && !local
	l.file.places["auth "+out.Address] = at
	if auth == "" {
		l.file.places["auth "+out.Address] = s.whereIs("address")
	}
	out.Provider, _ = field(s, "provider", parseText)
	l.file.places["listen address "+out.Address] = s.whereIs("address")
	l.file.places["listen provider "+out.Address] = s.whereIs("provider")
	plain, _ := field(s, "insecure_plaintext", parseBool)
	if !local && tls.empty && !plain && out.Address != "" {
		l.errorf(s.whereIs("address"), "%s can be reached from other machines without TLS, so that texts and keys travel in clear: give tls: {cert, key}, or insecure_plaintext: true if the network encrypts", out.Address)
	}
	return out
}

// address reads host:port. Names are not resolved: an address says where it can be reached
// from.
func (l *loading) address(s *section, key, fallback string) string {
	n, ok := s.scalar(key)
	if !ok {
		return fallback
	}
	host, port, err := net.SplitHostPort(n.text)
	number, wrong := strconv.Atoi(port)
	switch {
	case isDigits(n.text):
		l.errorf(n.place, "%s %s has no host: write 127.0.0.1:%s", key, show(n.text), n.text)
	case err != nil:
		l.errorf(n.place, "%s %s is no address: write host:port, such as %s", key, show(n.text), fallback)
	case wrong != nil || number < 0 || number > 65535:
		l.errorf(n.place, "%s %s: the port must be a number up to 65535", key, show(n.text))
	case host == "":
		l.errorf(n.place, "%s %s means every address of this machine: write 0.0.0.0%s if that is meant, or 127.0.0.1%s", key, show(n.text), n.text, n.text)
	case host != "localhost" && !isIP(host):
		l.errorf(n.place, "%s %s: write the IP address to listen on, or localhost", key, show(n.text))
	default:
		return n.text
	}
	return fallback
}

// isPort reports whether s is a port that can be dialled, or none.
func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return s == "" || err == nil && n >= 1 && n <= 65535
}

// isEveryAddress reports whether an address is that of every interface.
func isEveryAddress(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}

func isIP(s string) bool { _, err := netip.ParseAddr(s); return err == nil }

// isLocal reports whether an address can be reached from this machine alone.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (l *loading) admin() {
	s := l.top.sub("admin")
	if n := s.node.find("address"); n != nil && n.form == scalar && n.text == "off" {
		s.get("address")
	} else {
		l.file.Admin.Address = l.address(s, "address", "127.0.0.1:8786")
		if s.has("address") {
			l.file.places["admin.address"] = s.whereIs("address")
		}
	}
	token := l.secret(s.get("token"), "admin.token")
	l.file.Admin.TokenSHA256 = l.hash(token, s.whereIs("token"), "admin.token")
	if a := l.file.Admin.Address; a != "" && !isLoopback(a) && token.value == "" && !s.has("token") {
		l.errorf(s.whereIs("address"), "admin listens on %s, which other machines can reach, without a token: set admin.token, or listen on 127.0.0.1", a)
	}
	l.file.places["admin"] = s.at
	s.done()
}

// hash checks a token and returns its hash.
func (l *loading) hash(s Secret, at place, path string) [sha256.Size]byte {
	switch {
	case s.value == "":
		return [sha256.Size]byte{}
	case l.options.NoSecrets && s.value == withheld:
		return sha256.Sum256([]byte(path)) // one of its own
	case len(s.value) < 16 || len(s.value) > 256:
		l.errorf(at, "%s has %d characters: it needs 16 to 256; outlay-gateway token makes one", path, len(s.value))
	case strings.Trim(s.value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") != "":
		l.errorf(at, "%s may have letters, digits and _.- only; outlay-gateway token makes one", path)
	}
	return sha256.Sum256([]byte(s.value))
}

// stores reads where books and turns are kept.
func (l *loading) stores() {
	s := l.top.sub("ledger")
	c := &l.file.Ledger
	c.Kind, _ = field(s, "kind", oneOf("memory", "sqlite", "redis"))
	if n := s.node.find("kind"); n == nil {
		c.Kind = "memory"
	}
	c.Path, _ = field(s, "path", parseText)
	forget, _ := field(s, "allow_forgetting", parseBool)
	switch {
	case c.Kind == "sqlite" && c.Path == "":
		l.errorf(s.at, "ledger sqlite needs a path: write path: spend.db")
	case c.Kind != "sqlite" && c.Path != "" && c.Kind != "":
		l.errorf(s.whereIs("path"), "ledger.path is for kind: sqlite, and the kind is %s", c.Kind)
	case c.Kind == "memory" && !forget:
		l.errorf(s.at, "ledger memory forgets all spending at exit: set allow_forgetting: true if that is meant, or write ledger: {kind: sqlite, path: spend.db}")
	}
	c.Path = l.beside(c.Path)
	if c.Path != "" && c.Kind == "sqlite" {
		l.lookFor(filepath.Dir(c.Path), s.whereIs("path"), "ledger.path: the folder", "make it, or write another path")
	}
	l.keep(s, "ledger", "kind", "path")
	s.done()

	s = l.top.sub("limiter")
	kind, _ := field(s, "kind", oneOf("local", "redis"))
	l.file.Limiter.Kind = cmpOr(kind, "local")
	away, _ := field(s, "on_unavailable", oneOf("refuse", "local"))
	l.file.Limiter.Fallback = away == "local"
	l.keep(s, "limiter", "kind", "on_unavailable")
	s.done()
	l.redis()
}

// lookFor warns of a file that is not there.
func (l *loading) lookFor(path string, at place, what, remedy string) {
	if !l.options.Files || path == "" {
		return
	}
	if _, err := os.Stat(path); err != nil {
		l.warnf(at, "%s %s cannot be found (%s): %s", what, path, reason(err), remedy)
	}
}

// keep remembers where keys stand that need a restart.
func (l *loading) keep(s *section, path string, keys ...string) {
	l.file.places[path] = s.at
	for _, k := range keys {
		l.file.places[path+"."+k] = s.whereIs(k)
	}
}

func (l *loading) redis() {
	s, c := l.top.sub("redis"), &l.file.Redis
	if n := s.get("url"); n != nil {
		c.URL = l.redisURL(n)
	}
	c.Username, _ = field(s, "username", parseText)
	c.Password = l.secret(s.get("password"), "redis.password")
	c.Cluster, _ = field(s, "cluster", parseBool)
	c.SentinelMaster, _ = field(s, "sentinel_master", parseText)
	c.Prefix, _ = field(s, "prefix", parseText)
	if strings.ContainsAny(c.Prefix, "{}") {
		l.errorf(s.whereIs("prefix"), "redis.prefix must not contain a brace")
	}
	at := l.file.places["ledger.kind"]
	if l.file.Limiter.Kind == "redis" {
		at = l.file.places["limiter.kind"]
	}
	shared := l.file.Ledger.Kind == "redis" || l.file.Limiter.Kind == "redis"
	switch {
	case shared && !s.has("url"):
		l.errorf(at, "redis.url is missing, and kind: redis needs it: write redis: {url: redis://host:6379}")
	case !shared && !s.empty:
		l.warnf(s.at, "redis is not used: write kind: redis for ledger and limiter")
	}
	if a, b := l.file.Ledger.Kind == "redis", l.file.Limiter.Kind == "redis"; a != b {
		l.warnf(s.at, "only one of ledger and limiter is shared: three replicas may %s", map[bool]string{true: "send three times the rates", false: "spend three times the budgets"}[a])
	}
	l.keep(s, "redis")
	s.done()
}

// redisURL reads an address of Redis, which is a secret if it holds a password.
func (l *loading) redisURL(n *node) Secret {
	if !l.isScalar(n, "redis.url") {
		return Secret{}
	}
	value := Secret{n.text}
	if !strings.HasPrefix(n.text, "redis") {
		if value = l.secret(n, "redis.url"); value.value == "" || value.value == withheld {
			return value
		}
	}
	u, err := url.Parse(value.value)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "redis" && u.Scheme != "rediss" || !isPort(u.Port()) || strings.ContainsAny(u.Host, ", "):
		l.errorf(n.place, "redis.url is no address: write redis://host:6379, or rediss:// for TLS, or env:NAME")
	case strings.Trim(u.Path, "/") != "" && !isDigits(strings.Trim(u.Path, "/")), u.RawQuery != "", u.Fragment != "":
		l.errorf(n.place, "redis.url: nothing but the number of a database may follow the host: write redis://host:6379/1")
	case value.value == n.text && u.User != nil:
		l.errorf(n.place, "redis.url holds a password: write redis.password: env:NAME, or url: env:NAME")
	}
	return value
}

// rest reads the keys that concern no part of their own.
func (l *loading) rest() {
	s := l.top.sub("headers")
	show, _ := field(s, "outlay", parseBool)
	l.file.Config.HideOutlay = s.has("outlay") && !show
	s.done()
	l.file.Config.Hosts = fields(l.top, "hosts", parseHost)

	s = l.top.sub("log")
	level, _ := field(s, "level", oneOf("debug", "info", "warn", "error"))
	format, _ := field(s, "format", oneOf("json", "text"))
	calls, _ := field(s, "calls", oneOf("all", "refusals", "none"))
	l.file.Log = LogChoice{cmpOr(level, "info"), cmpOr(format, "json"), cmpOr(calls, "all")}
	s.done()

	grace, _ := field(l.top, "shutdown", positive)
	if l.file.Shutdown = grace; grace == 0 {
		l.file.Shutdown = 30 * time.Second
	}
}

// callers reads who may call.
func (l *loading) callers() {
	l.top.each("callers", "caller", func(name, value *node) {
		path := "callers." + brief(name.text)
		s := l.section(value, path, name.place)
		l.named(name, "caller")
		c := Caller{Name: name.text}
		token := l.secret(s.get("token"), path+".token")
		c.TokenSHA256 = l.hash(token, s.whereIs("token"), path+".token")
		if sum, at := field(s, "token_sha256", parseText); sum != "" {
			c.TokenSHA256 = l.sum(sum, at, path)
		}
		switch has := s.has("token") || s.has("token_sha256"); {
		case has && name.text == localName:
			l.errorf(s.keyAt(map[bool]string{true: "token", false: "token_sha256"}[s.has("token")]), "caller local is whoever comes without a token: give the token to a caller of another name")
		case !has && name.text != "local":
			l.errorf(name.place, "caller %s has no token: write token: env:NAME, or token_sha256 as outlay-gateway token prints it", show(name.text))
		case s.has("token") && s.has("token_sha256"):
			l.errorf(s.keyAt("token_sha256"), "caller %s has both token and token_sha256: write one", show(name.text))
		}
		c.Providers = fields(s, "providers", parseText)
		if n := s.node.find("providers"); n != nil && n.form == list && len(n.items) == 0 {
			l.errorf(n.place, "%s.providers is empty, which would allow all: leave it out for that, or name some", path)
		}
		c.Tenant, _ = field(s, "tenant", parseText)
		priority, _ := field(s, "priority", oneOf("normal", "critical", "bulk"))
		c.Priority = map[string]throttle.Priority{"critical": throttle.Critical, "bulk": throttle.Bulk}[priority]
		c.MaySet = fields(s, "may_set", oneOf("tenant", "priority", "max_wait"))
		s.done()
		l.file.Config.Callers = append(l.file.Config.Callers, c)
		l.file.places[path] = name.place
		l.file.places[path+".providers"] = s.whereIs("providers")
	})
}

func (l *loading) sum(text string, at place, path string) (sum [sha256.Size]byte) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(sum) {
		l.errorf(at, "%s.token_sha256 is no SHA-256: it has 64 hexadecimal digits, in quotes if they are all decimal", path)
		return sum
	}
	return [sha256.Size]byte(b)
}

// named checks a name of ours, which becomes a part of paths, labels and keys.
func (l *loading) named(n *node, what string) {
	if t := n.text; t == "" || len(t) > 64 || strings.Trim(t, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") != "" || strings.Trim(t, ".") == "" {
		l.errorf(n.place, "%s name %s: use up to 64 letters, digits, _, . and -", what, show(t))
	}
}
