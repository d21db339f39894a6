package sqliteledger

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNetworkFileSystems(t *testing.T) {
	for magic, name := range map[uint32]string{0x6969: "nfs", 0xff534d42: "smb", 0xfe534d42: "smb", 0x01021997: "9p", 0x65735546: "fuse", 0xef53: "", 0x01021994: ""} {
		require.Equal(t, name, networkName(magic))
	}
}
