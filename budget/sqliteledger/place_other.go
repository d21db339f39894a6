//go:build !linux

package sqliteledger

import "os"

// otherPlace cannot tell on this system.
func otherPlace(string, os.FileInfo) string { return "" }
