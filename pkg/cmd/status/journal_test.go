package status

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/kube"
)

func TestTheEndOfAJournalSaysWhereToGoOn(t *testing.T) {
	for name, tc := range map[string]struct{ in, lines, cursor string }{
		"lines":           {"a\nb\n-- cursor: s=1;i=2\n", "a\nb\n", "s=1;i=2"},
		"nothing new":     {"-- cursor: s=1;i=2\n", "", "s=1;i=2"},
		"no cursor":       {"a\n", "a\n", ""},
		"a line about it": {"a -- cursor: x\n", "a -- cursor: x\n", ""},
		"no word":         {"a\n-- cursor: x'; rm\n", "a\n", ""},
	} {
		lines, cursor := cutCursor([]byte(tc.in))
		assert.Equal(t, tc.lines, string(lines), name)
		assert.Equal(t, tc.cursor, cursor, name)
	}
}

func TestAShellIsPaictlsOwn(t *testing.T) {
	p := (&View{Kube: kube.Options{Kubeconfig: "k", Context: "c"}}).shellCommand(t.Context(), "alice/train", "worker[3]").(process)
	assert.Equal(t, []string{"job", "shell", "alice/train", "--task", "worker[3]", "--kubeconfig", "k", "--context", "c"}, p.Args[1:])
}
