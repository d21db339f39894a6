package sqliteledger

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

// Each name of a file would have a log of its own: both would spend the whole budget.
func TestAFileWithSeveralNamesIsRefused(t *testing.T) {
	path, other := filepath.Join(t.TempDir(), "spend.db"), filepath.Join(t.TempDir(), "other.db")
	month := budget.Budget{Name: "month", Limit: 10 * budget.Unit, Every: budget.Month}
	l := open(t, path)
	require.NoError(t, os.Link(path, other))
	_, err := l.Hold(t.Context(), holdOf(budget.HoldID{Boot: 1, Seq: 1}, month, "10"))
	require.NoError(t, err)
	for _, name := range []string{path, other} {
		_, err = Open(name)
		requireFault(t, err, Foreign)
		require.ErrorContains(t, err, "2 names")
	}
	require.NoError(t, os.Remove(other))
	_, err = open(t, path).Hold(t.Context(), holdOf(budget.HoldID{Boot: 1, Seq: 2}, month, "10"))
	require.Error(t, err)
	require.NoError(t, os.Symlink(path, other))
	_, err = open(t, other).Hold(t.Context(), holdOf(budget.HoldID{Boot: 1, Seq: 3}, month, "10"))
	require.ErrorAs(t, err, new(*budget.ExceededError), "a symbolic link is the same name")
}

func TestMountsOfOneFile(t *testing.T) {
	mounts := "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" +
		"31 22 8:1 /srv/spend.db /data/spend.db rw,relatime shared:1 - ext4 /dev/sda1 rw\n" +
		`32 22 8:1 /srv/a /my\040books/a\134b.db rw - ext4 /dev/sda1 rw` + "\n"
	for path, want := range map[string]bool{
		"/data/spend.db": true, `/my books/a\b.db`: true, "/data": false, "/data/other.db": false, "/srv/spend.db": false,
	} {
		require.Equal(t, want, isMount(mounts, path), path)
	}
}
