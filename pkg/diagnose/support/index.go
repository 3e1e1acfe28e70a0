package support

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/ui/plural"
)

// Index describes the content of a bundle. The bundle contains it as index.json and as an HTML page.
type Index struct {
	Version  string    `json:"paictl"`
	Command  string    `json:"command"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	Cluster  string    `json:"cluster,omitempty"`
	Server   string    `json:"server,omitempty"`
	// Since is the beginning of the collected logs and journals. Zero means that they are complete.
	Since time.Time `json:"since,omitzero"`
	// Secrets is the number of known secrets that were searched for. Unsearchable is the number of secrets that are too short for a search.
	Secrets      int       `json:"knownSecrets"`
	Unsearchable int       `json:"unsearchableSecrets"`
	Files        []Entry   `json:"files"`
	Missing      []Missing `json:"missing"`
	Notes        []string  `json:"notes,omitempty"`
}

// Entry describes one file of a bundle.
type Entry struct {
	Name string `json:"name"`
	What string `json:"what"`
	Size int64  `json:"size"` // bytes
	// Redacted counts the redacted secrets, by kind.
	Redacted map[string]int `json:"redacted,omitempty"`
	// Cut is the number of bytes that were omitted from the middle of the file.
	Cut int64 `json:"cut,omitempty"`
}

// Missing is a part that could not be read completely, with the reason.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

func (ix *Index) sort() {
	slices.SortFunc(ix.Files, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(order(a.Name), order(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(ix.Missing, func(a, b Missing) int {
		return cmp.Or(cmp.Compare(order(a.What), order(b.What)), cmp.Compare(a.What, b.What))
	})
}

func order(name string) int {
	folder, _, _ := strings.Cut(name, "/")
	return slices.Index(Parts(), folder)
}

func (ix *Index) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(ix)
}

// Total returns the size of all files before compression.
func (ix *Index) Total() int64 {
	var n int64
	for _, f := range ix.Files {
		n += f.Size
	}
	return n
}

// Redactions returns the number of redacted secrets in all files.
func (ix *Index) Redactions() int {
	n := 0
	for _, f := range ix.Files {
		for _, c := range f.Redacted {
			n += c
		}
	}
	return n
}

// Section is a section of the HTML page. It lists the files of one folder.
type Section struct {
	Name, What string
	Files      []Entry
}

// sectionOf returns the name of a file's section. It is the folder that contains the file, or the part if the file isn't in a subfolder.
func sectionOf(name string) string {
	folder, rest, _ := strings.Cut(name, "/")
	if sub, _, deeper := strings.Cut(rest, "/"); deeper {
		folder += "/" + sub
	}
	return folder
}

// Sections groups the files by folder. For example, the files of one machine or of one namespace form a section.
func (ix *Index) Sections() []Section {
	var out []Section
	for _, f := range ix.Files {
		name := sectionOf(f.Name)
		if len(out) == 0 || out[len(out)-1].Name != name {
			out = append(out, Section{Name: name, What: partText()[name]})
		}
		out[len(out)-1].Files = append(out[len(out)-1].Files, f)
	}
	return out
}

func partText() map[string]string {
	return map[string]string{
		PartConfiguration: "The four files, secrets masked: of the operator's folder, and of the copy that the cluster holds.",
		PartMachines:      "Reports of the machines, by SSH. Certificates and their expiry are in status.json.",
		PartKubernetes:    "Objects of the API: as tables (.txt) and whole (.json).",
		PartServices:      "The platform's services.",
		PartScheduler:     "Virtual clusters and who waits for GPUs.",
		PartLogs:          "Logs of containers.",
		PartReports:       "Reports of other paictl commands about the cluster.",
	}
}

//go:embed index.html.tmpl
var indexPage string

func (ix *Index) writeHTML(w io.Writer) error {
	t, err := template.New("index").Funcs(template.FuncMap{
		"size": size, "time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"took":  func() string { return ix.Finished.Sub(ix.Started).Round(time.Second).String() },
		"short": func(section, name string) string { return strings.TrimPrefix(name, section+"/") }, "changes": changes,
	}).Parse(indexPage)
	if err != nil {
		return err
	}
	return t.Execute(w, ix)
}

// changes describes the changes of a file's content, or returns "".
func changes(e Entry) string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(e.Redacted)) {
		out = append(out, fmt.Sprintf("%d × %s", e.Redacted[kind], kind))
	}
	text := strings.Join(out, ", ")
	if text != "" {
		text = "redacted: " + text
	}
	if e.Cut > 0 {
		text = strings.TrimPrefix(text+"; "+size(e.Cut)+" cut out of the middle", "; ")
	}
	return text
}

func size(n int64) string {
	switch {
	case n < 10_000:
		return plural.Of(int(n), "byte")
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

// Size formats a number of bytes with a suitable unit.
func Size(n int64) string { return size(n) }
