//go:build !linux

package sqliteledger

func asNobody() {}
