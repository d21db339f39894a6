//go:build !unix

package sqliteledger

// On systems without flock nothing tells a dead owner from a stopped one: Open refuses.
type presence struct{}

func appear(string, int64) (*presence, error) { return nil, &Error{Fault: Unsupported} }
func (*presence) leave() error                { return nil }
func dead(string, int64) bool                 { return false }
func forget(string, int64)                    {}
