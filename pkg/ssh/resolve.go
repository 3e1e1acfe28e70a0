package ssh

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// maxJumps is the maximum length of a chain of jump hosts. The limit stops cycles in the configuration.
const maxJumps = 8

// endpoint is a Target after the configuration and the defaults have filled the empty fields.
type endpoint struct {
	name string
	host string
	port int
	user string

	password   secret.String
	sudo       secret.String
	keyFile    string
	passphrase secret.String
	identities []string // the keys of the configuration
	onlyThese  bool     // IdentitiesOnly: neither other agent keys nor default files

	jumps      []*endpoint // outermost first
	knownHosts []string    // the first is extended
	policy     HostKeyPolicy

	configFile string            // the file of OpenSSH's client
	configured map[string]string // the settings in use, by key
}

// origin returns a text for errors. origin lists the given keys whose values come from OpenSSH's configuration. origin returns "" if no value comes
// from the configuration.
func (e *endpoint) origin(keys ...string) string {
	var parts []string
	for _, key := range keys {
		if v := e.configured[key]; v != "" {
			parts = append(parts, key+" "+v)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s in %s)", strings.Join(parts, ", "), e.configFile)
}

// field returns the name of the setting that an operator must change. This is a field of layout.yaml, or the key in OpenSSH's configuration if the
// configuration sets the value.
func (e *endpoint) field(own, key string) string {
	if e.configured[key] == "" {
		return own
	}
	return fmt.Sprintf("%s in %s, or give %s", key, e.configFile, own)
}

func (e *endpoint) address() string { return net.JoinHostPort(e.host, strconv.Itoa(e.port)) }

// key returns the key of the endpoint's connection. Endpoints with equal hosts and routes have equal keys.
func (e *endpoint) key() string {
	parts := []string{e.user, e.address(), e.keyFile, e.password.Reveal(), strings.Join(e.knownHosts, ",")}
	for _, j := range e.jumps {
		parts = append(parts, j.user, j.address())
	}
	return strings.Join(parts, "\x00")
}

// resolver resolves targets to endpoints. config is nil if no configuration file exists.
type resolver struct {
	o      Options
	config *clientConfig
	warn   func(string) // each text once
}

// newResolver reads the configuration of OpenSSH's client. A missing file isn't an error.
func newResolver(o Options) (*resolver, error) {
	r := &resolver{o: o, warn: once(o.Warn)}
	if o.ConfigFile == "" {
		return r, nil
	}
	var err error
	r.config, err = configReader{home: o.Home, warn: r.warn}.read(o.ConfigFile, 0)
	if os.IsNotExist(err) {
		return r, nil
	}
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return nil, hint.Wrap(fmt.Errorf("read OpenSSH's configuration: %w", err), "check that "+p.Path+" is a file that you may read")
	}
	return r, err
}

// once returns a function that passes each text to warn only once. The function can be called concurrently.
func once(warn func(string)) func(string) {
	var said sync.Map
	return func(text string) {
		if _, before := said.LoadOrStore(text, true); !before && warn != nil {
			warn(text)
		}
	}
}

// get returns the value of a setting for a host, or "".
func (r *resolver) get(host, key string) string { return r.config.first(host, key).value }

// target resolves t with its chain of jump hosts.
func (r *resolver) target(t Target) (*endpoint, error) {
	if t.Address == "" {
		return nil, hint.Errorf("give the machine an address", "reach %q: it has no address", t.String())
	}
	e, err := r.host(t)
	if err != nil {
		return nil, err
	}
	chain := t.JumpHosts
	if chain == "" {
		chain = e.from("ProxyJump", r.proxyJump(t.Address))
	}
	if p := r.config.first(t.Address, "ProxyCommand"); chain == "" && p.value != "" && !strings.EqualFold(p.value, None) {
		r.warn(fmt.Sprintf("%s:%d: paictl runs no ProxyCommand, and connects directly; write ProxyJump, or set ssh-jump-host", p.file, p.line))
	}
	e.jumps, err = r.chain(chain, t, 0)
	if err != nil {
		return nil, fmt.Errorf("jump hosts of %s: %w", t, err)
	}
	return e, nil
}

// host resolves all fields of a target except the jump hosts.
func (r *resolver) host(t Target) (*endpoint, error) {
	e := &endpoint{
		name:       t.String(),
		host:       t.Address,
		port:       t.Port,
		user:       t.User,
		configFile: r.o.ConfigFile,
		configured: map[string]string{},
		password:   t.Password,
		sudo:       cmp.Or(t.SudoPassword, t.Password),
		passphrase: t.KeyPassphrase,
		policy:     r.policy(t.Address),
		onlyThese:  strings.EqualFold(r.get(t.Address, "IdentitiesOnly"), "yes"),
	}
	if e.port == 0 {
		text := cmp.Or(e.from("Port", r.get(t.Address, "Port")), "22")
		var err error
		if e.port, err = strconv.Atoi(text); err != nil {
			return nil, hint.Errorf("correct "+e.field("ssh-port", "Port"), "reach %s: %q is not a port%s", t, text, e.origin("Port"))
		}
	}
	if e.port < 1 || e.port > 65535 {
		return nil, hint.Errorf("give a port from 1 to 65535: correct "+e.field("ssh-port", "Port"), "reach %s: %d is not a port%s", t, e.port, e.origin("Port"))
	}
	if e.user == "" {
		e.user = cmp.Or(e.from("User", r.get(t.Address, "User")), r.o.LocalUser)
	}
	if name := e.from("HostName", r.get(t.Address, "HostName")); name != "" {
		e.host = strings.NewReplacer("%h", t.Address, "%%", "%").Replace(name)
	}
	if t.KeyFile != "" {
		e.keyFile = r.path(t.KeyFile, e)
	}
	e.identities = r.identities(t.Address, e)
	e.knownHosts = r.knownHosts(t, e)
	return e, nil
}

// from records that a value comes from OpenSSH's configuration, and returns the value.
func (e *endpoint) from(key, value string) string {
	e.configured[key] = value
	return value
}

// identities returns the configured key files of a host.
func (r *resolver) identities(host string, e *endpoint) []string {
	var paths []string
	for _, s := range r.config.all(host, "IdentityFile") {
		if s.value != "" && !strings.EqualFold(s.value, None) {
			paths = append(paths, r.path(s.value, e))
		}
	}
	return paths
}

// knownHosts returns the known_hosts files for a target. The client appends accepted keys to the first file.
func (r *resolver) knownHosts(t Target, e *endpoint) []string {
	if t.KnownHosts != "" {
		return []string{r.path(t.KnownHosts, e)}
	}
	var files []string
	for _, f := range strings.Fields(r.get(t.Address, "UserKnownHostsFile")) {
		if !strings.EqualFold(f, None) {
			files = append(files, r.path(f, e))
		}
	}
	if len(files) == 0 && r.o.KnownHosts != "" {
		files = []string{r.o.KnownHosts}
	}
	if r.o.SystemKnownHosts != "" {
		files = append(files, r.o.SystemKnownHosts)
	}
	return files
}

// policy returns the policy in the options. If that policy is HostKeyAsk, policy returns the policy of StrictHostKeyChecking. policy treats "no" as
// accept-new, because paictl never accepts a changed key.
func (r *resolver) policy(host string) HostKeyPolicy {
	if r.o.HostKeys != HostKeyAsk {
		return r.o.HostKeys
	}
	switch strings.ToLower(r.get(host, "StrictHostKeyChecking")) {
	case "yes":
		return HostKeyStrict
	case "accept-new", "no", "off":
		return HostKeyAcceptNew
	}
	return HostKeyAsk
}

// path expands ~ and OpenSSH's tokens in a file name.
func (r *resolver) path(p string, e *endpoint) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		p = filepath.Join(r.o.Home, p[1:])
	}
	return strings.NewReplacer("%d", r.o.Home, "%h", e.host, "%u", r.o.LocalUser, "%r", e.user,
		"%p", strconv.Itoa(e.port), "%%", "%").Replace(p)
}

func (r *resolver) proxyJump(host string) string {
	if v := r.get(host, "ProxyJump"); !strings.EqualFold(v, None) {
		return v
	}
	return ""
}

// chain resolves a list of jump hosts. The outermost jump host comes first. A jump host without its own settings uses the target's user, key and
// password, because a cluster usually has the same account everywhere.
func (r *resolver) chain(list string, t Target, depth int) ([]*endpoint, error) {
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	if depth > maxJumps {
		return nil, hint.Errorf("look for a loop of ProxyJump lines in "+r.o.ConfigFile, "more than %d jump hosts", maxJumps)
	}
	var out []*endpoint
	for i, spec := range strings.Split(list, ",") {
		jump, err := parseJump(strings.TrimSpace(spec))
		if err != nil {
			return nil, err
		}
		jump.User = cmp.Or(jump.User, r.get(jump.Address, "User"), t.User)
		jump.Password, jump.KeyFile, jump.KeyPassphrase, jump.KnownHosts = t.Password, t.KeyFile, t.KeyPassphrase, t.KnownHosts
		e, err := r.host(jump)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			if out, err = r.chain(r.proxyJump(jump.Address), t, depth+1); err != nil {
				return nil, err
			}
		}
		e.jumps = out[:len(out):len(out)]
		out = append(out, e)
	}
	if len(out) > maxJumps {
		return nil, hint.Errorf("shorten the list", "more than %d jump hosts", maxJumps)
	}
	return out, nil
}

// parseJump parses a jump host in the form [user@]host[:port], optionally with the prefix ssh://.
func parseJump(spec string) (Target, error) {
	bad := func() (Target, error) {
		return Target{}, hint.Errorf("write it as [user@]host[:port], an IPv6 address in brackets", "jump host %q is not valid", secret.Address(spec))
	}
	rest := strings.TrimPrefix(spec, "ssh://")
	var t Target
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		t.User, rest = rest[:i], rest[i+1:]
		if t.User == "" || strings.Contains(t.User, ":") { // a name with a colon is a name and a password
			return bad()
		}
	}
	t.Address = rest
	if host, port, err := net.SplitHostPort(rest); err == nil {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return bad()
		}
		t.Address, t.Port = host, n
	} else if strings.Count(rest, ":") == 1 {
		return bad()
	}
	t.Address = strings.TrimSuffix(strings.TrimPrefix(t.Address, "["), "]")
	if t.Address == "" || strings.ContainsAny(t.Address, " \t/@") {
		return bad()
	}
	t.Name = "jump host " + spec
	return t, nil
}
