package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// LoadOptions say how a file is read. The zero value is good.
type LoadOptions struct {
	// NoSecrets leaves env: and file: references alone, for checks on machines that do not
	// have them. What was loaded so cannot be served.
	NoSecrets bool
	// Files has the files looked for that the program will open: the folder of the ledger,
	// certificates and their keys. What is not there is a warning.
	Files bool
	// LookupEnv finds environment variables. Nil: os.LookupEnv.
	LookupEnv func(name string) (string, bool)
}

// File is a configuration file that was read: what the gateway serves, and what the program
// around it needs. Paths are relative to the folder of the file.
type File struct {
	// Path is that of the file, and Hash identifies what it and the files of its secrets
	// hold.
	Path, Hash string
	// Config is for [New] and [Gateway.Reload]. All else but Log holds until a restart.
	Config  Config
	Listen  []Listen
	Admin   Admin
	Ledger  LedgerChoice
	Limiter LimiterChoice
	Redis   RedisChoice
	Log     LogChoice
	// Shutdown is how long the program gives [Gateway.Shutdown]: 30 s if the file does not
	// say.
	Shutdown time.Duration

	secrets []string // files
	divided []budget.Budget
	owners  map[string]string // the providers of the divided budgets
	places  map[string]place
}

// Listen is one address on which programs come in.
type Listen struct {
	Listener
	// Address is host:port.
	Address string
	// Cert and Key are files. Empty: plain HTTP.
	Cert, Key string
}

// Admin is the listener for operators. An empty Address: there is none.
type Admin struct {
	// Address is host:port.
	Address string
	// TokenSHA256 is the hash of the token that changes ask for. Zero: nobody may change
	// anything.
	TokenSHA256 [sha256.Size]byte
}

// LedgerChoice says where the books are: "memory", "sqlite" in Path, or "redis".
type LedgerChoice struct{ Kind, Path string }

// LimiterChoice says who hands out turns: "local" or "redis".
type LimiterChoice struct {
	Kind string
	// Fallback gives each process a limiter of its own while Redis is away.
	Fallback bool
}

// RedisChoice is how Redis is reached.
type RedisChoice struct {
	// URL is redis://host:port/db, or rediss:// for TLS; it may hold a password.
	URL            Secret
	Username       string
	Password       Secret
	Cluster        bool
	SentinelMaster string
	// Prefix begins all keys. Empty: outlay.
	Prefix string
}

// LogChoice is what is logged and how.
type LogChoice struct {
	// Level is debug, info, warn or error, Format json or text, Calls all, refusals or none.
	Level, Format, Calls string
}

// Load reads a configuration file. All that is wrong with it is told at once, in the order
// of the file: if there is an error the File is nil, else the problems are warnings.
//
// It opens nothing but the file and those of its secrets and certificates.
func Load(path string, o LoadOptions) (*File, []Problem) {
	r := &reader{file: path, options: o}
	text, what := readBounded(path)
	if what != "" {
		r.errorf(place{}, "%s", what)
		return nil, r.problems
	}
	f := r.load(text)
	if r.failed() {
		return nil, r.sorted()
	}
	f.Path, f.secrets, f.Hash = path, r.secrets, fingerprint(text, r.sums)
	f.Config.Source = path + " " + f.Hash
	return f, r.sorted()
}

// readBounded reads a file that may not be one.
func readBounded(path string) ([]byte, string) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "cannot be read: " + reason(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, "cannot be read: " + reason(err)
	case info.IsDir():
		return nil, "is a folder: name the file in it"
	case info.Size() > maxFile:
		return nil, "is larger than 1 MiB: this is no configuration"
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, "cannot be read: " + reason(err)
	case len(text) > maxFile:
		return nil, "is larger than 1 MiB: this is no configuration"
	}
	return text, ""
}

// Fingerprint reads the file and those of its secrets again and identifies what they hold:
// it differs from f.Hash when one of them has changed, or cannot be read any more.
func Fingerprint(f *File) string {
	text, what := readBounded(f.Path)
	sums := [][sha256.Size]byte{sha256.Sum256([]byte(what))}
	if what == "" {
		sums = nil
	}
	for _, name := range f.secrets {
		b, err := os.ReadFile(name)
		if err != nil {
			b = []byte("cannot be read: " + reason(err))
		}
		sums = append(sums, sha256.Sum256(b))
	}
	return fingerprint(text, sums)
}

// AdminAddress is the admin address that a file names, also of a file that is wrong
// elsewhere: a program that runs with the one before it is asked there how it is. Of a file
// that does not tell, it is the default.
func AdminAddress(path string) string {
	text, _ := readBounded(path)
	top := func(text []byte) *section {
		r := &reader{file: path, options: LoadOptions{NoSecrets: true}}
		return r.section(parseFile(text, r), "", place{1, 1})
	}
	s := top(text)
	if !s.has("admin") { // the part by itself may be readable
		s = top(adminPart.Find(text))
	}
	l := &loading{reader: s.r, top: s, file: &File{places: map[string]place{}}}
	l.admin()
	return l.file.Admin.Address
}

// adminPart is the key with the lines that are indented below it.
var adminPart = regexp.MustCompile(`(?m)^admin:.*(\n([ \t#].*)?\r?)*`)

func fingerprint(text []byte, sums [][sha256.Size]byte) string {
	h := sha256.New()
	_, _ = h.Write(text)
	for _, s := range sums {
		_, _ = h.Write(s[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
