package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

func TestHiveDsFiguresAreThereForEachSizeAndSeed(t *testing.T) {
	h, err := readHiveD()
	require.NoError(t, err)
	for _, gpus := range []int{64, 512, 2048, 8192} {
		for _, v := range variants {
			assert.NotNil(t, h.mean(gpus, v.name, []int{0, 1, 7, 42}), "%d %s", gpus, v.name)
			assert.Nil(t, h.mean(gpus, v.name, []int{0, 2}), "a seed that wasn't measured")
		}
	}
	assert.InEpsilon(t, 1191, h.mean(64, "kept", []int{0})[kills], 1e-9)
	assert.InEpsilon(t, 18124, h.mean(64, "kept", []int{0})[all], 1e-9)
}

// An independent program has replayed the same jobs. According to it, guaranteed jobs were complete after 3,735 s. It doesn't consider the turns of
// virtual clusters, which slightly change the times of opportunistic jobs (46,694 s there) and the number of killed jobs (1,049).
func TestTheFiguresAreThoseThatWereMeasuredIndependently(t *testing.T) {
	rows, err := compare(t.Context(), 64, variants[0], []int{0}, cell.PolicyNames())
	require.NoError(t, err)
	require.Len(t, rows, len(cell.Policies))
	assert.InDelta(t, 3735, rows[0].figures[guaranteed], 0.5)
	assert.InEpsilon(t, 1049, rows[0].figures[kills], 0.01)
	assert.InEpsilon(t, 46694, rows[0].figures[opportunistic], 0.05)
}

func TestTheTableSaysWhatIsTheSameOnce(t *testing.T) {
	one := make(figures, columns)
	for i := range one {
		one[i] = float64(1000 * (i + 1))
	}
	other := append(figures{}, one...)
	other[kills] = 8
	text := table(2048, variants[1], one[:ofHiveD], []row{{"a", one}, {"b", other}, {"c", one}})
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, lines, 3)
	for _, line := range lines {
		assert.Equal(t, strings.Count(strings.Split(header, "\n")[0], "|"), strings.Count(line, "|"))
	}
	assert.Contains(t, lines[0], "| 2,048 | lost | HiveD | 10,000 / 11,000 | – |")
	assert.Contains(t, lines[1], "| 2,048 | lost | a, c | 10,000 / 11,000 | 1.000 / 1.000 |")
	assert.Contains(t, lines[2], "| 8 | .002 |")
}

func TestMistakesAreNamed(t *testing.T) {
	for _, c := range []struct{ flag, value, says string }{
		{"-gpus", "x", `"x" is not 0 or a positive number`},
		{"-seeds", "1,-1", `"-1" is not 0 or a positive number`},
		{"-gpus", "65", "no trace of 65 GPUs"},
		{"-policies", "fast", `there is no policy "fast"`},
	} {
		require.ErrorContains(t, run(t.Context(), []string{c.flag, c.value}), c.says)
	}
}
