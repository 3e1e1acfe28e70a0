package cluster

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ssh"
)

const (
	phaseSecrets   = "secrets"
	phaseNewKey    = "new-key"
	phaseUseKey    = "use-key"
	phaseRewrite   = "rewrite"
	phaseOldKey    = "old-key"
	rewriteTimeout = 30 * time.Minute
	keyBytes       = 32 // the length of a secretbox key
)

//go:embed scripts/secrets.sh
var secretsScript string

type restKey struct {
	name   string
	secret secret.String // base64
}

// keyState is the progress of a key rotation, on one master or on all masters.
type keyState int

const (
	keyAbsent keyState = iota // the master doesn't have the new key
	keyReads                  // it reads with the new key, and writes with the old one
	keyWrites                 // it writes with the new key
	keyAlone                  // it has only the new key
)

// RotateSecrets replaces the key with which API servers encrypt Secrets in etcd. First, all masters get the new key. In the second step, they encrypt
// with the new key. RotateSecrets then writes all Secrets again and removes the old keys. No API server restarts. RotateSecrets reads the progress of
// an earlier run from the files of the masters. With Options.DryRun it only returns the changes that it would make.
func RotateSecrets(ctx context.Context, s *engine.Spec, o engine.Options) ([]engine.Change, error) {
	r := engine.NewRun(s, o)
	defer r.Close()
	masters := slices.Clone(s.ControlPlane())
	slices.SortFunc(masters, engine.ByAddress)
	r.Started = o.Clock()
	r.Emit(engine.Event{Kind: engine.EventRunStarted, Message: "cluster secrets rotate", Hosts: hostnames(masters), Phases: []string{phaseNewKey, phaseUseKey, phaseRewrite, phaseOldKey}})
	if err := connect(ctx, r, masters); err != nil {
		return nil, err
	}
	for _, n := range masters {
		if r.IsAside(n) {
			return nil, hint.Errorf("start the machine, or remove it from the cluster: paictl node remove "+n.Hostname,
				"%s doesn't answer: it would come back with a key by which it can't read the Secrets that others have written", n.Hostname)
		}
	}
	k := &keyRotation{Run: r, masters: masters, files: map[*engine.Node][]restKey{}, written: map[*engine.Node]secret.String{}}
	ctx, unlock, err := r.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := k.read(ctx); err != nil {
		return nil, err
	}
	if err := k.rotate(ctx); err != nil {
		return nil, fmt.Errorf("rotate the key of Secrets at rest: %w", err)
	}
	for _, n := range masters {
		if !o.DryRun {
			r.Emit(engine.Event{Kind: engine.EventHostDone, Host: n.Hostname})
		}
	}
	return k.planned, r.Summary("cluster secrets rotate", masters, k.planned)
}

type keyRotation struct {
	*engine.Run
	masters []*engine.Node
	files   map[*engine.Node][]restKey
	written map[*engine.Node]secret.String // the content that was written to the files
	planned []engine.Change                // in a dry run
}

// read reads the keys of the masters. It returns an error if a rotation can't continue from their current state.
func (k *keyRotation) read(ctx context.Context) error {
	var mu sync.Mutex
	var strangers, fixed []string
	for n, err := range k.Each(ctx, k.masters, func(ctx context.Context, n *engine.Node) error {
		a, err := engine.Answer(k.Read(ctx, n, phaseSecrets, "read", k.script("s_read\n", n)))
		if err != nil {
			return err
		}
		data := engine.Decoded(a.Value("file"))
		keys, err := parseKeys(data)
		mu.Lock()
		defer mu.Unlock()
		k.files[n], k.written[n] = keys, secret.String(data)
		if a.Value("reloads") != "yes" {
			fixed = append(fixed, n.Hostname)
		}
		for _, row := range a.All("master") {
			if len(row) > 0 && !slices.ContainsFunc(k.masters, func(n *engine.Node) bool { return n.Hostname == row[0] }) && !slices.Contains(strangers, row[0]) {
				strangers = append(strangers, row[0])
			}
		}
		return err
	}) {
		return fmt.Errorf("%s: %w", n.Hostname, err)
	}
	slices.Sort(strangers)
	slices.Sort(fixed)
	switch {
	case len(strangers) > 0:
		return hint.Errorf("list it in layout.yaml, or remove it from the cluster: kubectl delete node "+strangers[0],
			"the cluster has a master that layout.yaml doesn't: %s; it would keep its old key", strings.Join(strangers, ", "))
	case len(fixed) > 0:
		return hint.Errorf("run paictl cluster up, which lets them", "the API servers of %s don't read their keys again when those change", strings.Join(fixed, ", "))
	}
	return nil
}

func (k *keyRotation) script(body string, n *engine.Node) string {
	return k.Spec.SelfAPI(n) + "NODE=" + shell.Quote(n.Hostname) + "\n" + secretsScript + body
}

// rotate continues the rotation at the current state of the masters.
func (k *keyRotation) rotate(ctx context.Context) error {
	state, keys, err := furthest(k.files)
	if err != nil {
		return err
	}
	if state == keyAlone && k.same(keys) { // the last rotation is complete
		fresh, err := newKey(keys)
		if err != nil {
			return err
		}
		state, keys = keyReads, append(slices.Clone(keys), fresh)
	}
	if k.Opts.DryRun {
		k.plan(state, keys)
		return nil
	}
	if err := k.give(ctx, state.phase(), keys); err != nil {
		return err
	}
	if state == keyReads {
		last := len(keys) - 1
		keys = append([]restKey{keys[last]}, keys[:last]...)
		if err := k.give(ctx, phaseUseKey, keys); err != nil {
			return err
		}
		state = keyWrites
	}
	if state == keyWrites {
		if err := k.rewrite(ctx, keys[0]); err != nil {
			return err
		}
		return k.give(ctx, phaseOldKey, keys[:1])
	}
	return nil
}

func (s keyState) phase() string {
	switch s {
	case keyReads:
		return phaseNewKey
	case keyWrites:
		return phaseUseKey
	}
	return phaseOldKey
}

// same reports whether all masters have the given keys in the given order.
func (k *keyRotation) same(keys []restKey) bool {
	return !slices.ContainsFunc(k.masters, func(n *engine.Node) bool { return !slices.Equal(k.files[n], keys) })
}

func (k *keyRotation) plan(state keyState, keys []restKey) {
	say := func(n *engine.Node, phase, target, detail string) {
		c := engine.Change{Host: n.Hostname, Phase: phase, Action: "update", Target: target, Detail: detail}
		k.planned = append(k.planned, c)
		k.Emit(engine.Event{Kind: engine.EventPlanned, Host: n.Hostname, Phase: phase, Change: &c})
	}
	newest := keys[0].name
	if state == keyReads {
		newest = keys[len(keys)-1].name
	}
	for _, n := range k.masters {
		if !slices.Equal(k.files[n], keys) || state != keyAlone {
			say(n, state.phase(), phases.EncryptionFile, "key "+newest)
		}
	}
	if state != keyAlone {
		say(k.masters[0], phaseRewrite, "all Secrets", "written again by key "+newest)
	}
}

// give writes the keys to all masters. It waits until the API servers use the keys.
func (k *keyRotation) give(ctx context.Context, phase string, keys []restKey) error {
	data, err := renderKeys(keys)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(data.Reveal()))
	for n, err := range k.Each(ctx, k.masters, func(ctx context.Context, n *engine.Node) error {
		return tell(ctx, k.Run, n, phase, func(ctx context.Context, n *engine.Node) ([]engine.Change, error) {
			var done []engine.Change
			if k.written[n] != data {
				if _, err := k.Script(ctx, n, phase, "keys", secretsScript+engine.Heredoc("s_put", []byte(data.Reveal()))); err != nil {
					return nil, err
				}
				done = append(done, engine.Change{Action: "update", Target: phases.EncryptionFile, Detail: "writes by key " + keys[0].name + reads(keys[1:])})
			}
			_, err := k.Read(ctx, n, phase, "loaded", k.script("s_loaded "+hex.EncodeToString(sum[:])+"\n", n))
			return done, err
		})
	}) {
		return fmt.Errorf("%s: %w", n.Hostname, err)
	}
	for _, n := range k.masters {
		k.files[n], k.written[n] = keys, data
	}
	return nil
}

func reads(others []restKey) string {
	if len(others) == 0 {
		return ""
	}
	names := make([]string, len(others))
	for i, o := range others {
		names[i] = o.name
	}
	return ", reads by " + strings.Join(names, ", ") + ", too"
}

// rewrite writes all Secrets again, so that the API server encrypts them with the given key. It checks the result in etcd.
func (k *keyRotation) rewrite(ctx context.Context, key restKey) error {
	return tell(ctx, k.Run, k.masters[0], phaseRewrite, func(ctx context.Context, n *engine.Node) ([]engine.Change, error) {
		a, err := engine.Answer(k.Exec(ctx, n, ssh.Script{
			Name: "secrets/rewrite", Mutates: true, Timeout: rewriteTimeout,
			Body: engine.ApplyProgram(k.Id, phaseRewrite, k.script("s_rewrite "+key.name+"\n", n)),
		}))
		if err != nil {
			return nil, err
		}
		return []engine.Change{{Action: "update", Target: "all Secrets", Detail: a.Value("secrets") + " in etcd, all encrypted by key " + key.name}}, nil
	})
}

// furthest returns the progress and the keys of the most advanced master. The other masters must have the same keys or the keys of the previous step.
// Otherwise furthest returns an error.
func furthest(files map[*engine.Node][]restKey) (keyState, []restKey, error) {
	var newest restKey
	for _, keys := range files {
		for _, key := range keys {
			if newest.name == "" || keyNumber(key) > keyNumber(newest) {
				newest = key
			}
		}
	}
	stateOf := func(keys []restKey) keyState {
		switch i := slices.Index(keys, newest); {
		case i < 0:
			return keyAbsent
		case len(keys) == 1:
			return keyAlone
		case i == 0:
			return keyWrites
		}
		return keyReads
	}
	state, keys := keyAbsent, []restKey(nil)
	for _, have := range files {
		if s := stateOf(have); s >= state {
			state, keys = s, have
		}
	}
	for n, have := range files {
		if !precedes(have, stateOf(have), keys, state) {
			return 0, nil, hint.Errorf("put the file of the others there; the Secrets in etcd say by which key they are written (k8s:enc:secretbox:v1:NAME)",
				"the keys in %s of %s are not those of the other masters, nor of a step before", phases.EncryptionFile, n.Hostname)
		}
	}
	return state, keys, nil
}

// precedes reports whether a master has the same keys as the most advanced master, or the keys of the previous step.
func precedes(have []restKey, is keyState, furthest []restKey, state keyState) bool {
	if slices.Equal(have, furthest) {
		return true
	}
	switch {
	case is != state-1:
		return false
	case state == keyReads:
		return slices.Equal(have, furthest[:len(furthest)-1])
	case state == keyWrites:
		return slices.Equal(have, append(slices.Clone(furthest[1:]), furthest[0]))
	}
	return have[0] == furthest[0] // it has further keys
}

var keyName = regexp.MustCompile(`^paictl-([1-9][0-9]{0,8})$`)

// keyNumber returns the number in the name of a key. It expects a name that parseKeys has checked.
func keyNumber(k restKey) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(k.name, "paictl-"))
	return n
}

func newKey(after []restKey) (restKey, error) {
	data := make([]byte, keyBytes)
	if _, err := rand.Read(data); err != nil {
		return restKey{}, err
	}
	last := slices.MaxFunc(after, func(a, b restKey) int { return keyNumber(a) - keyNumber(b) })
	return restKey{fmt.Sprintf("paictl-%d", keyNumber(last)+1), secret.String(base64.StdEncoding.EncodeToString(data))}, nil
}

// parseKeys parses a file of keys in paictl's format. Its errors don't contain a key.
func parseKeys(data []byte) ([]restKey, error) {
	changed := hint.Errorf("rotate the keys by hand, as Kubernetes documents it under \"Encrypting Confidential Data at Rest\"",
		"%s is not as paictl writes it: Secrets by secretbox with keys paictl-NUMBER, then identity", phases.EncryptionFile)
	conf := apiserverv1.EncryptionConfiguration{}
	if err := yaml.UnmarshalStrict(data, &conf); err != nil {
		return nil, changed // the error may contain a part of the key
	}
	if len(conf.Resources) != 1 || !slices.Equal(conf.Resources[0].Resources, []string{"secrets"}) || len(conf.Resources[0].Providers) != 2 {
		return nil, changed
	}
	box, identity := conf.Resources[0].Providers[0], conf.Resources[0].Providers[1]
	if box.Secretbox == nil || identity.Identity == nil || len(box.Secretbox.Keys) == 0 {
		return nil, changed
	}
	var out []restKey
	for _, key := range box.Secretbox.Keys {
		raw, err := base64.StdEncoding.DecodeString(key.Secret)
		if err != nil || len(raw) != keyBytes || !keyName.MatchString(key.Name) || slices.ContainsFunc(out, func(k restKey) bool { return k.name == key.Name }) {
			return nil, changed
		}
		out = append(out, restKey{key.Name, secret.String(key.Secret)})
	}
	return out, nil
}

// renderKeys returns the content of the file with the keys. API servers encrypt with the first key and decrypt with all keys.
func renderKeys(keys []restKey) (secret.String, error) {
	box := &apiserverv1.SecretboxConfiguration{}
	for _, key := range keys {
		box.Keys = append(box.Keys, apiserverv1.Key{Name: key.name, Secret: key.secret.Reveal()})
	}
	data, err := yaml.Marshal(apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiserver.config.k8s.io/v1", Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{
			Resources: []string{"secrets"},
			Providers: []apiserverv1.ProviderConfiguration{{Secretbox: box}, {Identity: &apiserverv1.IdentityConfiguration{}}},
		}},
	})
	return secret.String(data), err
}
