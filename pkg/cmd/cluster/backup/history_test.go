package backup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/backup"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/iostreams"
)

func TestTheHistoryOfAnotherClusterIsTakenOnlyIfThatIsSaid(t *testing.T) {
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "5b1e"}})
	for name, c := range map[string]struct {
		uid           string
		other         bool
		refuses, says string
	}{
		"the same cluster, or the one from which it was restored": {uid: "5b1e"},
		"another one of that name":                                {uid: "77aa", refuses: "the backup is of another cluster with the name pai: its namespace kube-system has the UID 77aa, and that of this cluster 5b1e"},
		"another one, and that is wanted":                         {uid: "77aa", other: true, says: "another cluster with the name pai"},
		"a backup of before UIDs were noted":                      {says: "only the name was compared"},
	} {
		t.Run(name, func(t *testing.T) {
			f := cmdutil.New("v0.0.0-test")
			io, _, _, stderr := iostreams.Test()
			f.IO = io
			m := &backup.Manifest{Head: backup.Head{Cluster: "pai", UID: c.uid}}
			err := (&RestoreOptions{Factory: f, OtherCluster: c.other}).sameUID(t.Context(), client, m)
			if c.refuses != "" {
				require.ErrorContains(t, err, c.refuses)
				assert.Contains(t, hint.Of(err), "--other-cluster")
				return
			}
			require.NoError(t, err)
			if c.says == "" {
				assert.Empty(t, stderr.String())
			} else {
				assert.Contains(t, stderr.String(), c.says)
			}
		})
	}
}

func TestWhatIsLeftToDoAfterARestore(t *testing.T) {
	opts := &RestoreOptions{File: "pai.paictl-backup", Keys: keyFlags{Identities: []string{"key.txt"}}}
	opts.Flags.Dir = "./cluster"
	assert.NotContains(t, opts.next(""), "history")
	left := opts.next("m1 has another one already, which stays")
	assert.Contains(t, left, "  paictl cluster restore pai.paictl-backup -p ./cluster --identity key.txt --history\n")
	assert.Contains(t, left, "m1 has another one already, which stays")
}
