package sqliteledger

import (
	"fmt"
	"syscall"
)

// networkFS names the file system of path if it is shared between machines, or served
// by a program that we cannot trust with locks and syncs. The numbers are those of
// statfs(2), linux/magic.h.
func networkFS(path string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return "" // opening it will say what is wrong
	}
	return networkName(uint32(st.Type))
}

func networkName(magic uint32) string {
	switch magic {
	case 0x6969:
		return "nfs"
	case 0xff534d42, 0xfe534d42, 0x517b:
		return "smb"
	case 0x01021997:
		return "9p"
	case 0x65735546:
		return "fuse"
	case 0x00c36400:
		return "ceph"
	case 0x5346414f:
		return "afs"
	case 0x7461636f:
		return "ocfs2"
	case 0x01161970:
		return "gfs2"
	case 0x0bd00bd0:
		return "lustre"
	case 0x47504653:
		return "gpfs"
	case 0x786f4256:
		return fmt.Sprintf("vboxsf (%#x)", magic)
	default:
		return ""
	}
}
