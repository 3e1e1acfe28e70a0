package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/test/tier"
)

// upVar is an environment variable with options in JSON. If it is set, the test binary runs Up with these options instead of tests. A test can then
// kill the process while Up is running.
const upVar = "SANDBOX_TEST_UP"

func TestMain(m *testing.M) {
	if o := os.Getenv(upVar); o != "" {
		var opts Options
		err := json.Unmarshal([]byte(o), &opts)
		if err == nil {
			_, err = Up(context.Background(), opts)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// requireHosts skips the test, with the reason, if sandbox hosts can't be created.
func requireHosts(t *testing.T) {
	t.Helper()
	tier.More(t, "sandbox hosts")
	if err := requireRoot(); err != nil {
		t.Skip(err)
	}
	if err := requirePackages(t.Context(), Full, false, nil); err != nil {
		t.Skip(err)
	}
	src, err := machineSource(t.Context())
	if err != nil {
		t.Skip(err)
	}
	if !exists(filepath.Join(DefaultCache, "base-"+baseID(src))) && os.Getenv("PAICTL_TEST_BASE") == "" {
		t.Skip("no base image yet; make it with \"paictl sandbox up\", or set PAICTL_TEST_BASE=1 to let the test make it")
	}
}

// trace contains every trace on the machine that a sandbox could leave.
type trace map[string][]string

func machineTrace(t *testing.T, dir string) trace {
	t.Helper()
	tr := trace{}
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	tr["mounts"] = strings.Split(string(mounts), "\n")
	links, err := net.Interfaces()
	require.NoError(t, err)
	for _, l := range links {
		tr["links"] = append(tr["links"], l.Name)
	}
	tables, err := run(t.Context(), nil, "nft", "list", "tables")
	require.NoError(t, err)
	tr["tables"] = strings.Split(tables, "\n")
	cg, err := machineCgroups()
	require.NoError(t, err)
	for _, point := range append(cg.v1, cg.unified) {
		groups, err := filepath.Glob(filepath.Join(point, "*paictl*"))
		require.NoError(t, err)
		tr["cgroups"] = append(tr["cgroups"], groups...)
	}
	require.NoError(t, eachProcess(func(pid int) {
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if _, ok := markOf(pid, dir); ok || strings.Contains(string(cmdline), dir) {
			tr["processes"] = append(tr["processes"], strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}))
	notes, err := filepath.Glob("/run/systemd/nspawn/*/*")
	require.NoError(t, err)
	tr["nspawn"] = notes
	if ledger, err := os.ReadFile(ledgerPath); err == nil {
		tr["ledger"] = []string{strconv.FormatBool(strings.Contains(string(ledger), dir))}
	} else {
		for _, key := range []string{"net/ipv4/ip_forward", "fs/inotify/max_user_instances"} {
			value, err := os.ReadFile(filepath.Join("/proc/sys", key))
			require.NoError(t, err)
			tr["settings"] = append(tr["settings"], key+"="+string(value))
		}
		tr["ledger"] = []string{"false"}
	}
	return tr.without(others(t, dir))
}

// assertAsBefore fails if a sandbox in dir has left traces, or has removed parts of other programs. Other sandboxes may start or end during the
// test. The machine's settings are therefore compared only if no other sandbox had changed them.
func assertAsBefore(t *testing.T, before trace, dir string) {
	t.Helper()
	others := regexp.MustCompile(`paictl|sandbox|\b[pv]b-`)
	assert.EventuallyWithT(t, func(c *assert.CollectT) {
		now := machineTrace(t, dir)
		for k, lines := range now {
			if k != "settings" || before[k] != nil {
				assert.Subset(c, before[k], lines, "left: %s", k)
			}
		}
		for k, lines := range before {
			if k != "settings" || now[k] != nil {
				assert.Subset(c, now[k], slices.DeleteFunc(slices.Clone(lines), others.MatchString), "gone: %s", k)
			}
		}
	}, 20*time.Second, 200*time.Millisecond)
}

func others(t *testing.T, dir string) *regexp.Regexp {
	t.Helper()
	st, err := readState(dir)
	own := "-"
	if err == nil {
		own = st.Name
	}
	links, err := net.Interfaces()
	require.NoError(t, err)
	names := []string{"^$"}
	for _, l := range links {
		if name, ok := strings.CutPrefix(l.Name, "pb-"); ok && name != own && name != testName() {
			names = append(names, `\b`+regexp.QuoteMeta(name)+`(-\d+)?\b`, "sandbox_"+strings.ReplaceAll(name, "-", "_"))
		}
	}
	return regexp.MustCompile(strings.Join(names, "|"))
}

func (tr trace) without(re *regexp.Regexp) trace {
	for k, lines := range tr {
		tr[k] = slices.DeleteFunc(lines, re.MatchString)
		slices.Sort(tr[k])
		if len(tr[k]) == 0 {
			delete(tr, k)
		}
	}
	return tr
}

// testName returns a sandbox name that is unique to this process, because other processes may run the same tests.
func testName() string { return fmt.Sprintf("t%d", os.Getpid()%1_000_000) }

func testOptions(t *testing.T, kind Kind, hosts int) Options {
	t.Helper()
	return Options{Dir: filepath.Join(t.TempDir(), "sandbox"), Name: testName(), Kind: kind, Hosts: hosts, Progress: func(s string) { t.Log(s) }}
}

func down(t *testing.T, dir string) {
	t.Helper()
	s, err := Load(dir, func(s string) { t.Log(s) })
	if err != nil {
		require.ErrorIs(t, err, ErrNone)
		return
	}
	// Don't use the test's context itself, because it has ended when a cleanup runs.
	require.NoError(t, s.Down(context.WithoutCancel(t.Context())))
	assert.NoDirExists(t, dir)
}

func execOn(t *testing.T, s *Sandbox, h Host, user, command string) string {
	t.Helper()
	b, err := os.ReadFile(s.KeyFile())
	require.NoError(t, err)
	key, err := ssh.ParsePrivateKey(b)
	require.NoError(t, err)
	check, err := knownhosts.New(s.KnownHosts())
	require.NoError(t, err)
	at := netip.AddrPortFrom(h.Address, 22).String()
	c, err := ssh.Dial("tcp", at, &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: check,
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519}, Timeout: 10 * time.Second})
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	session, err := c.NewSession()
	require.NoError(t, err)
	out, err := session.CombinedOutput(command)
	require.NoError(t, err, "%s: %s", command, out)
	return strings.TrimSpace(string(out))
}

func TestLightHostsComeUpAnswerAndLeaveNothing(t *testing.T) {
	requireHosts(t)
	opts := testOptions(t, Light, 5)
	before := machineTrace(t, opts.Dir)
	s, err := Up(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { down(t, opts.Dir) })
	hosts, err := s.Hosts()
	require.NoError(t, err)
	require.Len(t, hosts, 5)
	for _, h := range hosts {
		assert.True(t, h.Running)
		assert.Equal(t, h.Name+" root", execOn(t, s, h, "root", "echo $(hostname) $(id -un)"))
	}
	assert.NotEqual(t, before, machineTrace(t, opts.Dir), "the comparison must see a sandbox, or it proves nothing")

	again, err := Up(t.Context(), Options{Dir: opts.Dir, Hosts: 6})
	require.NoError(t, err)
	assert.Equal(t, testName()+"-6", execOn(t, again, again.state.Hosts[5], "root", "hostname"))

	require.NoError(t, again.Stop(t.Context(), testName()+"-2"))
	h, err := again.Host(testName() + "-2")
	require.NoError(t, err)
	assert.False(t, h.Running)
	require.NoError(t, again.Start(t.Context(), testName()+"-2"))
	assert.Equal(t, testName()+"-2", execOn(t, again, h, "pai", "hostname"))

	require.NoError(t, again.Remove(t.Context(), testName()+"-3"))
	hosts, err = again.Hosts()
	require.NoError(t, err)
	require.Len(t, hosts, 5)
	assert.True(t, hosts[2].Running, "the others run on")
	_, err = net.InterfaceByName("vb-" + testName() + "-3")
	require.Error(t, err)

	down(t, opts.Dir)
	assertAsBefore(t, before, opts.Dir)
}

func TestSandboxesThatAreMadeAtOnceHaveSubnetsOfTheirOwn(t *testing.T) {
	requireHosts(t)
	const n = 5
	made := make(chan *Sandbox, n)
	for i := range n {
		opts := testOptions(t, Light, 1)
		opts.Name += fmt.Sprint(i)
		go func() {
			// This is the first part of Up. Running all of Up would only make the test slower.
			s := &Sandbox{}
			err := os.MkdirAll(opts.Dir, 0o700)
			if err == nil {
				s, err = openOrCreate(t.Context(), opts)
			}
			if !assert.NoError(t, err) {
				s = nil
			}
			made <- s
		}()
	}
	var all []*Sandbox
	subnets := map[string]bool{}
	for range n {
		if s := <-made; s != nil {
			all, subnets[s.state.Subnet.String()] = append(all, s), true
		}
	}
	for _, s := range all { // only after all have chosen: a subnet that is free again may be chosen again
		assert.NoError(t, s.Down(t.Context()))
	}
	assert.Len(t, subnets, n)
}

func TestAFullHostBootsRebootsLosesPowerAndLeavesNothing(t *testing.T) {
	requireHosts(t)
	opts := testOptions(t, Full, 1)
	before := machineTrace(t, opts.Dir)
	s, err := Up(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { down(t, opts.Dir) })
	h, err := s.Host(testName() + "-1")
	require.NoError(t, err)
	assert.Equal(t, "systemd", execOn(t, s, h, "root", "cat /proc/1/comm"))
	assert.Equal(t, "running", execOn(t, s, h, "root", "systemctl is-system-running --wait"))
	assert.Equal(t, "1", execOn(t, s, h, "root", "cat /proc/sys/vm/overcommit_memory"))
	id := execOn(t, s, h, "root", "cat /etc/machine-id")
	assert.Len(t, id, 32)
	password, err := os.ReadFile(s.PasswordFile())
	require.NoError(t, err)
	assert.Equal(t, "root", execOn(t, s, h, "pai", "echo '"+strings.TrimSpace(string(password))+"' | sudo -S -p '' id -un"))

	boot := execOn(t, s, h, "root", "cat /proc/sys/kernel/random/boot_id; touch /root/kept /var/lib/kept")
	require.NoError(t, s.Reboot(t.Context(), h.Name))
	assert.NotEqual(t, boot, execOn(t, s, h, "root", "cat /proc/sys/kernel/random/boot_id"))
	require.NoError(t, s.Unplug(t.Context(), h.Name))
	require.NoError(t, s.Start(t.Context(), h.Name))
	assert.Equal(t, id, execOn(t, s, h, "root", "ls /root/kept /var/lib/kept >/dev/null; cat /etc/machine-id"))

	down(t, opts.Dir)
	assertAsBefore(t, before, opts.Dir)
}

func TestWhatIsLeftOfASandboxWithoutItsDirectoryCanBeRemoved(t *testing.T) {
	requireHosts(t)
	opts := testOptions(t, Light, 2)
	before := machineTrace(t, opts.Dir)
	_, err := Up(t.Context(), opts)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(opts.Dir))
	_, err = Up(t.Context(), opts)
	require.ErrorContains(t, err, "remains of a sandbox")
	assert.Contains(t, hint.Of(err), "sandbox down")
	s, err := Salvage(t.Context(), opts.Dir, nil)
	require.NoError(t, err)
	require.NoError(t, s.Down(t.Context()))
	assertAsBefore(t, before, opts.Dir)
	_, err = Salvage(t.Context(), opts.Dir, nil)
	require.ErrorIs(t, err, ErrNone)
}

func TestUpKilledAnywhereIsCompletedByTheNextAndRemovedByDown(t *testing.T) {
	requireHosts(t)
	self, err := os.Executable()
	require.NoError(t, err)
	// Together, these times interrupt all steps: keys, network, disks, start, waiting.
	for kind, moments := range map[Kind][]time.Duration{Light: {50, 200, 400}, Full: {150, 450, 800}} {
		for _, after := range moments {
			t.Run(fmt.Sprintf("%s after %d ms", kind, after), func(t *testing.T) {
				opts := testOptions(t, kind, 2)
				before := machineTrace(t, opts.Dir)
				opts.Progress = nil
				o, err := json.Marshal(struct {
					Dir, Name string
					Kind      Kind
					Hosts     int
				}{opts.Dir, opts.Name, opts.Kind, opts.Hosts})
				require.NoError(t, err)
				t.Cleanup(func() { down(t, opts.Dir) })
				for range 2 {
					ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
					cmd := exec.CommandContext(ctx, self)
					cmd.Env = append(os.Environ(), upVar+"="+string(o))
					_ = cmd.Run() // killed, or done before
					cancel()
				}
				s, err := Up(t.Context(), opts)
				require.NoError(t, err)
				hosts, err := s.Hosts()
				require.NoError(t, err)
				for _, h := range hosts {
					assert.Equal(t, h.Name, execOn(t, s, h, "root", "hostname"))
				}
				down(t, opts.Dir)
				assertAsBefore(t, before, opts.Dir)
			})
		}
	}
}
