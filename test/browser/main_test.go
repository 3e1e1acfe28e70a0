package browser

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/test/tier"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// open starts a browser that trusts the servers of tests. The browser runs until the test ends.
func open(t *testing.T) context.Context {
	t.Helper()
	tier.More(t, "a browser")
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is missing: apt-get install -y chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("ignore-certificate-errors", true))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	require.NoError(t, chromedp.Do(ctx))
	return ctx
}

// script runs a script in the page that the browser shows, and returns the result.
func script[T any](t *testing.T, ctx context.Context, text string) T {
	t.Helper()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](text, chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return out
}
