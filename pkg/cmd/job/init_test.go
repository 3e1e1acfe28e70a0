package job

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func initOn(t *testing.T, answers string, args ...string) (stderr string, err error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	f := cmdutil.New("test")
	s, in, _, errOut := iostreams.Test()
	s.SetTerminal(true)
	f.IO = s
	in.WriteString(answers)
	cmd := NewCmdInit(f)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return errOut.String(), err
}

func TestInitAsksAPerson(t *testing.T) {
	t.Chdir(t.TempDir())
	stderr, err := initOn(t, "my job\ntrain\n\npython3 train.py\nmany\n4\n\n0.5\n1e99\n\nvision\n\n")
	require.NoError(t, err)
	assert.Contains(t, stderr, "Name of the job [hello]: ")
	assert.Contains(t, stderr, "Write a number, such as 1.")
	assert.Contains(t, stderr, "the name \"my job\" is not allowed here\n  -> write letters", "and the other answers aren't lost")
	text, err := os.ReadFile("train.yaml")
	require.NoError(t, err)
	j, findings := protocol.Parse("train.yaml", text)
	require.NoError(t, findings.Err())
	assert.Equal(t, "train", j.Name)
	assert.Equal(t, "vision", j.VirtualCluster)
	assert.Equal(t, "python3 train.py", j.Roles[0].Command.Reveal())
	assert.Equal(t, []int{4, 0, 500, 1024}, []int{j.Roles[0].Instances, j.Roles[0].GPU, j.Roles[0].MilliCPU, j.Roles[0].MemoryMB})
}

func TestInitAsksNothingThatFlagsSay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	stderr, err := initOn(t, "", "--name", "a", "-o", file)
	require.NoError(t, err)
	assert.NotContains(t, stderr, "[")
	assert.FileExists(t, file)
}

func TestInitIsCancelledWhereNobodyAnswers(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := initOn(t, "train\n")
	require.ErrorIs(t, err, context.Canceled)
	assert.NoFileExists(t, "train.yaml")
}
