package transfer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// MaxEntries bounds how many entries of a folder are listed.
const MaxEntries = 2000

// maxText bounds the total length of names and targets of links, in bytes. JSON may take six times as many.
const maxText = 512 << 10

// Listing is a path in a task, with the entries of a folder.
type Listing struct {
	// Path is absolute.
	Path string `json:"path"`
	Entry
	// Entries are the entries of a folder, by name.
	Entries Entries `json:"entries,omitempty"`
	// More reports whether the folder has further entries.
	More bool `json:"more,omitempty"`
}

// Entry is a file or a folder.
type Entry struct {
	Name string `json:"name"`
	// Kind is the kind of a link's target.
	Kind Kind `json:"kind"`
	// Size is in bytes; 0 unless it is a file.
	Size     int64      `json:"size,omitempty"`
	Modified *time.Time `json:"modified,omitempty"`
	// Link is the target of a symbolic link, as stored in the link.
	Link string `json:"link,omitempty"`
}

// Entries holds at most MaxEntries entries.
type Entries []Entry

// UnmarshalJSON implements json.Unmarshaler. It reads at most MaxEntries entries, because the text may come from a task.
func (e *Entries) UnmarshalJSON(data []byte) error {
	*e = nil
	d := json.NewDecoder(bytes.NewReader(data))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return cmp.Or(err, errors.New("the entries aren't a list"))
	}
	for d.More() {
		if len(*e) == MaxEntries {
			return fmt.Errorf("there are more than %d entries", MaxEntries)
		}
		var one Entry
		if err := d.Decode(&one); err != nil {
			return err
		}
		*e = append(*e, one)
	}
	return nil
}

// Limits of the texts of a listing, in bytes. Linux has names of 255 bytes and paths of 4096; a byte that isn't UTF-8 takes three in JSON.
const (
	maxName = 3 * 255
	maxLink = 3 * 4096
	maxPath = 2 * maxLink // that of a folder, plus a path below it
)

// Check returns an error for a listing that List wouldn't return, because the text may come from a task. Unknown kinds become
// Other.
func (l *Listing) Check() error {
	if !strings.HasPrefix(l.Path, "/") || len(l.Path) > maxPath {
		return errors.New("the path isn't absolute, or too long")
	}
	l.Name = path.Base(l.Path)
	if err := l.check(); err != nil {
		return err
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") {
			return fmt.Errorf("entry %d has no name of a file", i)
		}
		if err := e.check(); err != nil {
			return err
		}
	}
	return nil
}

func (e *Entry) check() error {
	switch {
	case len(e.Name) > maxName:
		return fmt.Errorf("a name has more than %d bytes", maxName)
	case len(e.Link) > maxLink:
		return fmt.Errorf("the target of a link has more than %d bytes", maxLink)
	case e.Size < 0:
		return errors.New("a size is negative")
	}
	switch e.Kind {
	case None, File, Folder, Other:
	default:
		e.Kind = Other
	}
	return nil
}

// List returns a path, and the entries if it is a folder. If the path doesn't exist, the result has the kind None.
func List(name string) (*Listing, error) {
	whole, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(whole); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := &Listing{Path: whole, Entry: entryOf(whole)}
	if out.Kind != Folder {
		return out, nil
	}
	f, err := os.Open(whole)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	names, err := f.Readdirnames(MaxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if out.More = len(names) > MaxEntries; out.More {
		names = names[:MaxEntries]
	}
	out.Entries = make(Entries, 0, len(names))
	text := 0
	for _, n := range names {
		e := entryOf(filepath.Join(whole, n))
		if text += len(n) + len(e.Link); text > maxText {
			out.More = true
			break
		}
		if e.Kind != None || e.Link != "" {
			out.Entries = append(out.Entries, e)
		}
	}
	slices.SortFunc(out.Entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// entryOf returns the entry of a path. A path that can't be examined has the kind None.
func entryOf(name string) Entry {
	e := Entry{Name: filepath.Base(name), Kind: None}
	e.Link, _ = os.Readlink(name) // "" if it isn't a link
	info, err := os.Stat(name)
	if err != nil {
		return e
	}
	modified := info.ModTime().UTC()
	e.Modified = &modified
	switch {
	case info.IsDir():
		e.Kind = Folder
	case info.Mode().IsRegular():
		e.Kind, e.Size = File, info.Size()
	default:
		e.Kind = Other
	}
	return e
}
