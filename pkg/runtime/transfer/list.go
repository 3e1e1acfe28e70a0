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

// MaxEntries is the maximum number of entries in a listing.
const MaxEntries = 2000

// maxText is the maximum total length of names and link targets, in bytes. The JSON may be six times as long.
const maxText = 512 << 10

// Listing describes a path in a task. For a folder, it contains the entries.
type Listing struct {
	// Path is an absolute path.
	Path string `json:"path"`
	Entry
	// Entries are the entries of a folder, sorted by name.
	Entries Entries `json:"entries,omitempty"`
	// More reports whether the folder contains entries that aren't in Entries.
	More bool `json:"more,omitempty"`
}

// Entry describes a file or a folder.
type Entry struct {
	Name string `json:"name"`
	// Kind is the kind of the entry. For a link, it is the kind of the target.
	Kind Kind `json:"kind"`
	// Size is the size of a file in bytes. It is 0 for other kinds.
	Size     int64      `json:"size,omitempty"`
	Modified *time.Time `json:"modified,omitempty"`
	// Link is the target of a symbolic link, as stored in the link.
	Link string `json:"link,omitempty"`
}

// Entries holds at most MaxEntries entries.
type Entries []Entry

// UnmarshalJSON implements json.Unmarshaler. It reads at most MaxEntries entries, because the JSON may come from a task.
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

// Limits of the texts in a listing, in bytes. Linux allows names of 255 bytes and paths of 4096 bytes. In JSON, an invalid
// UTF-8 byte takes three bytes.
const (
	maxName = 3 * 255
	maxLink = 3 * 4096
	maxPath = 2 * maxLink // that of a folder, plus a path below it
)

// Check returns an error for a listing that List can't return. It also changes unknown kinds to Other. The listing may come
// from an untrusted task.
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

// List describes a path. For a folder, the listing contains the entries. If the path doesn't exist, the listing has the kind
// None.
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

// entryOf returns the entry of a path. An unreadable path has the kind None.
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
