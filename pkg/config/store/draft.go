package store

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
)

// Candidate is a configuration that a user wants to push.
type Candidate struct {
	// Dir is the folder of the files, for findings.
	Dir string
	// Files contains some or all of the four files. Missing files stay unchanged in the cluster.
	Files map[string][]byte
	// Base is the revision on which the files are based, or nil if the revision is unknown.
	Base *Base
	// Source is the origin of the files if they aren't from a folder of the operator. If the last push had the same source, the push needs no base.
	Source string
	// Force allows a push of files that are not based on the current revision.
	Force bool
	// Rename allows a push to change the cluster ID.
	Rename bool
}

// Draft is a push that has been checked but not executed yet.
type Draft struct {
	// Head is the current revision in the cluster, or nil before the first push.
	Head *Revision
	// Cluster is the whole configuration after the push.
	Cluster  *config.Cluster
	Warnings config.Findings
	// Changes lists the differences from the files in the cluster. It is empty if all files are equal.
	Changes []FileChange

	objects *objects
	after   *Copy
	source  string
	amends  bool // the secrets don't change, and weren't read
}

// First reports whether the cluster has no configuration yet.
func (d *Draft) First() bool { return d.Head == nil }

// Draft applies all rules to a candidate and compares it with the configuration in the cluster. It doesn't write to the cluster.
func (s *Store) Draft(ctx context.Context, c Candidate) (*Draft, error) {
	d := &Draft{source: c.Source}
	complete := len(c.Files) == len(config.Files())
	if complete { // mistakes in the files are reported before the cluster is contacted
		if err := s.check(d, c); err != nil {
			return nil, err
		}
	}
	var err error
	if d.objects, err = s.get(ctx); err != nil {
		return nil, err
	}
	before, err := s.before(ctx, d, c, complete)
	if err != nil {
		return nil, err
	}
	if !complete {
		if before == nil {
			return nil, hint.Errorf("push all four files first, without --only", "the cluster has no configuration yet that %s could be merged into", strings.Join(sortedNames(c.Files), ", "))
		}
		files := maps.Clone(before.Files)
		maps.Copy(files, c.Files)
		c.Files = files
		if err := s.check(d, c); err != nil {
			return nil, err
		}
	}
	if before == nil {
		before = &Copy{}
	}
	d.Changes = changes(before, d.after, "cluster/", "pushed/")
	return d, s.permit(d, c)
}

// before returns the configuration in the cluster, or nil if the cluster has no configuration. If all files are pushed with force, it also returns
// nil for an unreadable configuration.
func (s *Store) before(ctx context.Context, d *Draft, c Candidate, complete bool) (*Copy, error) {
	if d.objects.config == nil {
		return nil, nil
	}
	head := d.objects.head
	d.Head = &head
	before, err := s.copyOf(ctx, d.objects)
	if err != nil && c.Force && complete {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if before.Revision.Number != head.Number { // it was read again and has changed
		return nil, hint.Wrap(ErrChanged, remedyStale)
	}
	return before, nil
}

// check decodes the files, applies all rules, and separates the secrets from the files.
func (s *Store) check(d *Draft, c Candidate) error {
	cluster, err := config.Parse(c.Dir, c.Files)
	if err != nil {
		return err
	}
	d.Cluster, d.Warnings = cluster, config.Validate(cluster, s.Checks...)
	if err := d.Warnings.Err(); err != nil {
		return err
	}
	if d.after, err = s.splitAll(cluster, c.Dir, c.Files); err != nil {
		return err
	}
	d.Warnings = append(d.Warnings, inTheOpen(cluster, d.after)...)
	return nil
}

func (s *Store) splitAll(cluster *config.Cluster, dir string, files map[string][]byte) (*Copy, error) {
	c := &Copy{Files: files, shown: map[string][]byte{}, parts: credentials{}}
	for _, name := range config.Files() {
		find := secretsOf(name, nil)
		if name == config.ServicesFile {
			find = secretsOf(name, s.secretPaths(cluster))
		}
		shown, parts, err := split(filepath.Join(dir, name), files[name], find)
		if err != nil {
			return nil, err
		}
		c.shown[name] = shown
		if len(parts) > 0 {
			c.parts[name] = parts
		}
	}
	return c, nil
}

// permit returns an error if the push would go to the wrong cluster, or would overwrite the push of another user.
func (s *Store) permit(d *Draft, c Candidate) error {
	if d.First() {
		if c.Base != nil && !c.Force {
			return hint.Errorf("choose that cluster with --kubeconfig and --context; or push here anyway with --force",
				"the folder is based on revision %d of another cluster's configuration: this cluster has no configuration", c.Base.Revision)
		}
		return nil
	}
	head := *d.Head
	id := d.Cluster.Services.Cluster.Common.ClusterID
	if id != head.ClusterID && !c.Rename {
		return hint.Errorf("choose the right cluster with --kubeconfig and --context, or correct cluster.common.cluster-id in "+config.ServicesFile+
			"; --rename-cluster changes the cluster's id",
			"this is the cluster %q, but the configuration is for the cluster %q", head.ClusterID, id)
	}
	if c.Force || len(d.Changes) == 0 || c.Base == nil && c.Source != "" && c.Source == head.Source {
		return nil
	}
	return based(c, head)
}

const remedyStale = "see what differs with: paictl config diff -p DIR; get the cluster's files with: paictl config pull -o OTHER; --force overwrites them"

// based returns an error if the files are not based on the revision head.
func based(c Candidate, head Revision) error {
	b := c.Base
	switch {
	case b == nil && c.Source != "":
		return hint.Errorf("see what differs with: paictl config diff --from "+hint.Quote(c.Source)+"; --force overwrites it",
			"the cluster's configuration came from elsewhere: %s", describe(head))
	case b == nil:
		return hint.Errorf(remedyStale, "the cluster has a configuration that this folder is not based on: %s", describe(head))
	case b.UID != head.UID:
		return hint.Errorf("choose the right cluster with --kubeconfig and --context; or push here anyway with --force",
			"the folder is based on the configuration of another cluster with the same id %q", b.ClusterID)
	case b.Revision < head.Number:
		return hint.Errorf(remedyStale, "the cluster's configuration was changed since revision %d, on which this folder is based: %s", b.Revision, describe(head))
	case b.Revision > head.Number:
		return hint.Errorf(remedyStale, "the folder is based on revision %d, but the cluster only has %s: it may have been restored from a backup", b.Revision, describe(head))
	}
	return nil
}

// describe returns text with the author, the time, the files and the message of a push.
func describe(r Revision) string {
	text := fmt.Sprintf("revision %d was pushed by %s on %s", r.Number, r.By, r.Time.UTC().Format(time.RFC3339))
	if len(r.Files) > 0 {
		text += " (" + strings.Join(r.Files, ", ") + ")"
	}
	if r.Message != "" {
		text += ": " + r.Message
	}
	return text
}

// Diff compares files with the configuration in the cluster, which must exist. The files may violate rules, but they must not contain syntax or
// type errors.
func (s *Store) Diff(ctx context.Context, dir string, files map[string][]byte) (Revision, []FileChange, error) {
	cluster, err := config.Parse(dir, files)
	if err != nil {
		return Revision{}, nil, err
	}
	after, err := s.splitAll(cluster, dir, files)
	if err != nil {
		return Revision{}, nil, err
	}
	before, err := s.Pull(ctx)
	if err != nil {
		return Revision{}, nil, err
	}
	return before.Revision, changes(before, after, "cluster/", "folder/"), nil
}

// RollbackDraft returns a draft that pushes the files of an earlier revision. It returns an error if this revision has another cluster ID, because a
// rollback must not rename the cluster.
func (s *Store) RollbackDraft(ctx context.Context, number int) (*Draft, error) {
	o, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	earlier, err := s.at(ctx, o, number)
	if err != nil {
		return nil, err
	}
	d := &Draft{objects: o, Head: &o.head}
	c := Candidate{Dir: fmt.Sprintf("revision-%d", number), Files: earlier.Files}
	if err := s.check(d, c); err != nil {
		return nil, fmt.Errorf("go back to revision %d: %w", number, err)
	}
	if id := d.Cluster.Services.Cluster.Common.ClusterID; id != o.head.ClusterID {
		return nil, hint.Errorf(fmt.Sprintf("get its files with: paictl config pull -o DIR --revision %d; correct cluster.common.cluster-id in %s, then: paictl config push -p DIR --force; "+
			"or use --rename-cluster to give the cluster that id", number, config.ServicesFile),
			"in revision %d the cluster's id was %q; now it is %q", number, id, o.head.ClusterID)
	}
	before, err := open(o.config, o.secret, o.head)
	if err != nil { // it may be the reason for the rollback
		before = &Copy{}
	}
	d.Changes = changes(before, d.after, "current/", "rollback/")
	return d, nil
}

func sortedNames(files map[string][]byte) []string {
	var out []string
	for _, name := range config.Files() {
		if _, ok := files[name]; ok {
			out = append(out, name)
		}
	}
	return out
}
