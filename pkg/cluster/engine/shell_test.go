package engine

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// Each section except the last waits until the next section runs.
func TestAMachineWorksOnSectionsOfAQuestionAtATime(t *testing.T) {
	var sections []Section
	fifo := func(i int) string { return shell.Quote(filepath.Join(t.TempDir(), fmt.Sprint(i))) }
	var paths []string
	for i := range lanes {
		paths = append(paths, fifo(i))
		require.NoError(t, syscall.Mkfifo(strings.Trim(paths[i], "'"), 0o600))
	}
	for i := range lanes {
		body := "printf 'before\\n'\n"
		if i < lanes-1 {
			body += "read -r _ <" + paths[i+1] + "\n"
		}
		if i > 0 {
			body += "echo x >" + paths[i] + "\n"
		}
		sections = append(sections, Section{fmt.Sprint("waits ", i), body + "printf 'after\\n'"})
	}
	sections = append(sections,
		Section{"long", "head -c 300000 /dev/zero | tr '\\0' x | fold -w 100"},
		Section{"breaks", "printf 'one\\n'\nexit 7"},
		Section{"reads", "cat"},
		Section{"last", "printf 'two\\n'"})
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-s")
	cmd.Stdin = strings.NewReader(DetectProgram(sections) + "exit 0\n")
	out, err := cmd.Output()
	require.NoError(t, err)
	got, err := answer.Sections(out)
	require.NoError(t, err)
	require.Len(t, got, len(sections))
	for _, s := range sections[:lanes] {
		assert.Equal(t, [][]string{{"before"}, {"after"}}, got[s.Name].Rows, s.Name)
	}
	assert.Len(t, got["long"].Rows, 3000)
	assert.Equal(t, "7", got["breaks"].Failed)
	assert.Equal(t, [][]string{{"one"}}, got["breaks"].Rows)
	assert.Empty(t, got["reads"].Rows, "the script and other sections are not its input")
	assert.Equal(t, [][]string{{"two"}}, got["last"].Rows)
}
