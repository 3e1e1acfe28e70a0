package bundle

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

// stamp identifies the state of a file when it was hashed.
type stamp struct {
	Size   int64  `json:"size"`
	Inode  uint64 `json:"inode"`
	MTime  int64  `json:"mtime"` // ns since 1970
	SHA256 string `json:"sha256"`
}

// settled is the minimum age of a file's last change before the file's stamp is valid. Two writes can have the same time if they follow each other
// within the resolution of the file system's clock.
const settled = time.Second

// VerifyArtifacts checks only the given artifacts, and returns a *CorruptError like Verify. It doesn't hash a file whose size, inode and modification
// time haven't changed since its last successful check. The results are cached in the user's cache folder. Without the cache, all files are hashed.
func (b *Bundle) VerifyArtifacts(ctx context.Context, list []Artifact) error {
	known := readStamps(b.cacheFile)
	var todo []Artifact
	for _, a := range list {
		s, err := stampOf(b.File(a))
		if k, ok := known[b.File(a)]; err == nil && ok && a.SHA256 == k.SHA256 && s.same(k) {
			continue
		}
		todo = append(todo, a)
	}
	if len(todo) == 0 {
		return nil
	}
	// Take the stamps before hashing, so that the next check detects a change during the hashing.
	fresh := map[string]stamp{}
	for _, a := range todo {
		if s, err := stampOf(b.File(a)); err == nil && time.Since(time.Unix(0, s.MTime)) > settled {
			s.SHA256 = a.SHA256
			fresh[b.File(a)] = s
		}
	}
	if err := b.verify(ctx, todo, nil); err != nil {
		return err
	}
	addStamps(b.cacheFile, fresh)
	return nil
}

func (s stamp) same(o stamp) bool {
	return s.Size == o.Size && s.Inode == o.Inode && s.MTime == o.MTime
}

func stampOf(path string) (stamp, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}, fs.ErrInvalid
	}
	return stamp{Size: fi.Size(), Inode: st.Ino, MTime: fi.ModTime().UnixNano()}, nil
}

func readStamps(file string) map[string]stamp {
	known := map[string]stamp{}
	if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &known) != nil {
		return map[string]stamp{}
	}
	return known
}

// addStamps adds stamps to the cache. It removes the stamps of deleted files, so that the cache doesn't grow. It ignores errors, because the next run
// only hashes the files again.
func addStamps(file string, fresh map[string]stamp) {
	if file == "" || len(fresh) == 0 || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	known := readStamps(file)
	for path := range known {
		if _, err := os.Stat(path); err != nil {
			delete(known, path)
		}
	}
	for path, s := range fresh {
		known[path] = s
	}
	if data, err := json.Marshal(known); err == nil {
		_ = renameio.WriteFile(file, data, 0o600)
	}
}
