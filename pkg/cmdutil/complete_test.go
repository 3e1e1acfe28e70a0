package cmdutil

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
)

func TestArgumentsAreCompletedOnceAndUpToTheirNumber(t *testing.T) {
	f := New("v1")
	names := func(ctx context.Context, _ []string) ([]string, error) {
		_, limited := ctx.Deadline()
		assert.True(t, limited)
		return []string{"a\tthe first", "b"}, nil
	}
	for _, tt := range []struct {
		most int
		args []string
		want []string
	}{
		{1, nil, []string{"a\tthe first", "b"}},
		{1, []string{"b"}, nil},
		{2, []string{"a"}, []string{"b"}},
		{0, []string{"x", "y", "b"}, []string{"a\tthe first"}},
		{FlagValue, []string{"a", "b"}, []string{"a\tthe first", "b"}},
	} {
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		got, directive := f.Complete(tt.most, names)(cmd, tt.args, "")
		assert.Equal(t, tt.want, got)
		assert.Equal(t, cobra.ShellCompDirectiveNoFileComp, directive)
	}
}

func TestErrorsOfCompletionGoToTheLog(t *testing.T) {
	f, log := New("v1"), &bytes.Buffer{}
	f.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	got, _ := f.Complete(1, func(context.Context, []string) ([]string, error) { return nil, errors.New("no cluster") })(cmd, nil, "")
	assert.Empty(t, got)
	assert.Contains(t, log.String(), "no cluster")
}
