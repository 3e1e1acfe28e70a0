package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/tier"
)

// theHugo returns the path of Hugo, or skips the test if Hugo can't be built.
func theHugo(t *testing.T) string {
	t.Helper()
	tier.More(t, "Hugo, which takes minutes to build the first time")
	out, err := command(t.Context(), "../..", os.Stderr, "sh", "hack/hugo.sh")
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() == 75 {
		t.Skip("Hugo can't be built here")
	}
	require.NoError(t, err)
	return strings.TrimSpace(out)
}

// ofThisRepository writes the site of this repository to a folder, and returns the folder and the output.
func ofThisRepository(t *testing.T) (out string, said bytes.Buffer) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "site")
	require.NoError(t, run(t.Context(), []string{"--root", "../..", "--out", out, "--hugo", theHugo(t)}, &said, os.Stderr))
	return out, said
}

func TestTheSiteOfThisRepositoryHasNoDeadLink(t *testing.T) {
	out, said := ofThisRepository(t)
	assert.Contains(t, said.String(), "pages of unreleased")
	for _, file := range []string{"index.html", "docs/tutorials/newcomer.html", "docs/commands/job.html", "docs/rest-api.html", "changelog/unreleased/index.html", "docs/adr/0001-one-static-go-binary.html", "docs/screens/overview.svg", indexFile} {
		assert.FileExists(t, filepath.Join(out, file))
	}
}

func TestASiteWithADeadLinkIsAnError(t *testing.T) {
	hugo := theHugo(t)
	files := small()
	files["docs/one.md"] += "\n[gone](gone.md), [no heading](how-to/fix.md#nothing)\n"
	v := tree(t, files)
	_, err := command(t.Context(), v.root, os.Stderr, "sh", "-c", "git init -q && git add . && git -c user.name=a -c user.email=a@b commit -q -m a && git tag v0.1.0")
	require.NoError(t, err)
	var said bytes.Buffer
	out := filepath.Join(t.TempDir(), "site")
	err = run(t.Context(), []string{"--root", v.root, "--out", out, "--hugo", hugo}, &said, os.Stderr)
	require.EqualError(t, err, strings.Join([]string{
		"docs/one.md:18: gone.md leads to nothing: docs/gone.md doesn't exist",
		"docs/one.md:18: how-to/fix.html#nothing leads to nothing: docs/how-to/fix.html has no heading nothing",
		"v0.1.0: docs/one.md:18: gone.md leads to nothing: docs/gone.md doesn't exist",
		"v0.1.0: docs/one.md:18: how-to/fix.html#nothing leads to nothing: docs/how-to/fix.html has no heading nothing",
	}, "\n"))
	assert.FileExists(t, filepath.Join(out, "v0.1.0", "docs", "one.html"), "the site is written for a look at it")
}

// found is a script that types a text into the search field of a page, and returns the addresses of the results.
const found = `(async (text) => {
	const input = document.querySelector("search input"), list = document.querySelector("#found");
	const changed = new Promise((done) => new MutationObserver(done).observe(list, { childList: true }));
	input.focus();
	input.value = text;
	input.dispatchEvent(new Event("input"));
	await changed;
	return [...list.querySelectorAll("a")].map((a) => a.href);
})`

func TestTheSearchWorksWithoutAServer(t *testing.T) {
	out, _ := ofThisRepository(t)
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is missing: apt-get install -y chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	search := func(page, text string) []string {
		t.Helper()
		require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("file://"+filepath.Join(out, page))))
		got, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](found+`("`+text+`")`, chromedp.EvalAwaitPromise))
		require.NoError(t, err)
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], "file://"+out+"/")
		}
		return got
	}
	assert.Equal(t, "docs/virtual-clusters.html", search("docs/how-to/drain-a-rack.html", "virtual clusters")[0])
	assert.Equal(t, "docs/cluster.html#nvidias-driver", search("index.html", "NVIDIA's driver")[0])
	assert.Equal(t, "docs/tutorials/researcher.zh.html", search("index.zh.html", "研究人员")[0], "Chinese has no spaces")
	assert.Contains(t, search("index.html", "NodeDown"), "docs/alerts.html#nodedown")
	assert.Empty(t, search("index.html", "zzyzx quux"))
}
