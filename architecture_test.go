package paictl_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/openpai/paictl/"

// row is a line of the table of packages in docs/architecture.md.
type row struct {
	folders  []string
	imports  []string // prefixes of packages, without the module's name
	anything bool     // all of ours
	alone    bool     // no other packages than imports
}

var quoted = regexp.MustCompile("`([^`]+)`")

// names returns the names between backquotes: "pkg/job/archive", "api" are two packages of one folder, because
// the second has no slash, and a/{b,c} are two.
func names(cell, folder string) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		name := m[1]
		before, choice, many := strings.Cut(name, "{")
		if !many {
			out = append(out, path.Join(folder, name))
			continue
		}
		for one := range strings.SplitSeq(strings.TrimSuffix(choice, "}"), ",") {
			out = append(out, path.Join(folder, before+one))
		}
	}
	return out
}

// arrows reads the table.
func arrows(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile("docs/architecture.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| folder | what lives there | imports,")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var rows []row
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		r := row{imports: names(cells[3], "pkg"), anything: strings.Contains(cells[3], "everything"), alone: strings.Contains(cells[3], "nothing")}
		first := names(cells[1], "")
		for _, f := range first {
			if !strings.Contains(f, "/") {
				f = path.Join(path.Dir(first[0]), f)
			}
			r.folders = append(r.folders, f)
		}
		rows = append(rows, r)
	}
	return rows
}

// below reports whether a package is one of the folders or is inside one, and returns the length of that folder's name.
func below(pkg string, folders []string) (length int, ok bool) {
	for _, f := range folders {
		if (pkg == f || strings.HasPrefix(pkg, f+"/")) && len(f) > length {
			length, ok = len(f), true
		}
	}
	return length, ok
}

// The table of packages in docs/architecture.md says who imports whom.
func TestPackagesImportWhatTheArchitectureSays(t *testing.T) {
	rows := arrows(t)
	require.Greater(t, len(rows), 30)
	all := []string{"pkg/hint", "pkg/ui/plural", "pkg/version", "pkg/secret", "pkg/config/strictyaml"} // the table says that all may
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./pkg/...", "./templates/...").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(strings.ReplaceAll(line, module, ""))
		pkg := words[0]
		var mine row
		longest := 0
		for _, r := range rows {
			if n, ok := below(pkg, r.folders); ok && n > longest {
				mine, longest = r, n
			}
		}
		if !assert.NotZero(t, longest, "docs/architecture.md doesn't say what %s is", pkg) || mine.anything {
			continue
		}
		for _, imported := range words[1:] {
			if !strings.HasPrefix(imported, "pkg/") && imported != "templates" {
				continue
			}
			_, same := below(imported, mine.folders)
			_, allowed := below(imported, mine.imports)
			_, always := below(imported, all)
			always = always && !mine.alone
			if imported == "templates" {
				_, allowed = below("pkg/templates", mine.imports)
			}
			assert.True(t, same || allowed || always, "%s imports %s; docs/architecture.md allows %s %v", pkg, imported, strings.Join(mine.folders, ", "), mine.imports)
		}
	}
}

// paictl starts paictl-history to read a database: its libraries were a tenth of paictl (docs/adr/0073).
func TestPaictlHasNoDatabase(t *testing.T) {
	deps := func(program string) string {
		out, err := exec.Command("go", "list", "-deps", program).Output()
		require.NoError(t, err)
		return string(out)
	}
	without, with := deps("./cmd/paictl"), deps("./cmd/paictl-history")
	for _, library := range []string{"modernc.org/sqlite", "github.com/pressly/goose/", "github.com/jackc/pgx/", module + "pkg/job/archive"} {
		assert.NotContains(t, without, library)
		assert.Contains(t, with, library)
	}
}

// listens matches code that serves HTTP without pkg/httpserver.
var listens = regexp.MustCompile(`http\.(Server\{|ListenAndServe|Serve\(|ServeTLS\()|new\(http\.Server\)`)

// pkg/httpserver bounds the connections, headers and times of each listener. A listener without bounds takes all memory of its program.
func TestListenersAreBounded(t *testing.T) {
	exceptions := map[string]string{
		"pkg/httpserver":        "it sets the bounds",
		"pkg/client/browser":    "it listens at an address of this machine, while a person signs in",
		"pkg/cluster/peer":      "it serves without HTTP/2, and passes its listener to httpserver.Limit",
		"pkg/diagnose/netcheck": "it is a pod of the demo, and imports no other package of paictl",
		"hack":                  "its programs run only while paictl is developed",
	}
	used := map[string]bool{}
	for _, root := range []string{"cmd", "examples", "hack", "pkg", "templates"} {
		require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil || !listens.Match(text) {
				return err
			}
			for folder := range exceptions {
				if _, ok := below(path.Dir(filepath.ToSlash(file)), []string{folder}); ok {
					used[folder] = true
					return nil
				}
			}
			t.Errorf("%s serves HTTP without bounds: use httpserver.Serve", file)
			return nil
		}))
	}
	for folder, reason := range exceptions {
		assert.True(t, used[folder], "%s no longer serves HTTP itself: remove its exception (%s)", folder, reason)
	}
}
