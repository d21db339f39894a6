//go:build !linux

package sqliteledger

// networkFS cannot tell on this system.
func networkFS(string) string { return "" }
