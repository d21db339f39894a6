package gateway

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// Secret is a key or a password of a configuration. It prints as "(secret)", whatever the
// verb; the zero value is no secret.
type Secret struct{ value string }

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return s.value }

// String hides the secret.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "(secret)"
}

// GoString hides it from %#v as well.
func (s Secret) GoString() string { return s.String() }

// maxSecret bounds the file of a secret.
const maxSecret = 64 << 10

// withheld stands for secrets that were not looked at.
const withheld = "withheld-from-this-check"

// secret resolves a reference to a secret. What is wrong with it is said without the
// secret; path says whose it is.
func (r *reader) secret(n *node, path string) Secret {
	if n == nil || !r.isScalar(n, path) {
		return Secret{}
	}
	kind, ref, _ := strings.Cut(n.text, ":")
	var value, what string
	switch {
	case kind == "plain" && ref != "":
		r.warnf(n.place, "%s: the secret stands in this file itself: write env:NAME or file:/path", path)
		value = ref
	case kind == "env" && ref != "":
		value, what = r.fromEnv(ref)
	case kind == "file" && ref != "":
		value, what = r.fromFile(n, path, ref)
	default:
		what = "a secret is written as env:NAME, file:/path or plain:..., and this is none of them"
	}
	switch {
	case what != "":
	case strings.TrimSpace(value) != value:
		what = "the secret begins or ends with a blank: remove it"
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }):
		what = "the secret has several lines, or control characters: it must be one line"
	case strings.ContainsFunc(value, func(c rune) bool { return !unicode.IsPrint(c) }):
		what = "the secret has characters that cannot be seen, such as a byte order mark: save it as plain text"
	case len(value) > 1 && strings.ContainsRune("\"'", rune(value[0])) && value[0] == value[len(value)-1]:
		r.warnf(n.place, "%s: the secret stands in quotes, which are sent as a part of it", path)
	}
	if what != "" {
		r.errorf(n.place, "%s: %s", path, what)
		return Secret{}
	}
	return Secret{value}
}

func (r *reader) fromEnv(name string) (value, what string) {
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "" || len(name) > 100 {
		return "", "env: takes the name of an environment variable: letters, digits and _"
	}
	if r.options.NoSecrets {
		return withheld, ""
	}
	look := r.options.LookupEnv
	if look == nil {
		look = os.LookupEnv
	}
	switch value, ok := look(name); {
	case !ok:
		return "", "environment variable " + name + " is not set"
	case value == "":
		return "", "environment variable " + name + " is empty"
	default:
		return value, ""
	}
}

func (r *reader) fromFile(n *node, path, name string) (value, what string) {
	name = r.beside(name)
	if r.options.NoSecrets {
		return withheld, ""
	}
	f, err := os.Open(name)
	if err != nil {
		return "", "file " + name + " cannot be read: " + reason(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", "file " + name + " is no regular file"
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", "file " + name + " cannot be read: " + reason(err)
	case len(b) > maxSecret:
		return "", "file " + name + " is too large for a secret"
	}
	r.secrets, r.sums = append(r.secrets, name), append(r.sums, sha256.Sum256(b))
	value = strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if value == "" {
		return "", "file " + name + " is empty"
	}
	if info.Mode().Perm()&0o004 != 0 {
		r.warnf(n.place, "%s: everybody on this machine can read %s: chmod o-r %s", path, name, name)
	}
	return value, ""
}

// reason is the cause of an error of a file, without the path.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// beside makes a path of the file relative to the folder in which the file is: a ledger
// must be the same one from wherever the program is started.
func (r *reader) beside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(r.file), path)
}

// saysSecret reports whether a text has the mark of one.
func saysSecret(s string) bool { return strings.Contains(s, "plain:") || strings.Contains(s, "sk-") }

// looksSecret reports whether a text that is in the wrong place may be a secret.
func looksSecret(s string) bool {
	if saysSecret(s) || strings.Contains(s, "://") && strings.Contains(s, "@") {
		return true
	}
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ' ' || r == ':' }) {
		if len(w) >= 16 && strings.ContainsAny(w, "0123456789") && !strings.ContainsAny(w, "/.") &&
			strings.ContainsAny(strings.ToLower(w), "abcdefghijklmnopqrstuvwxyz") {
			return true
		}
	}
	return false
}
