package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/peer"
	"github.com/openpai/paictl/pkg/ssh"
)

func first(int) int { return 0 }

func missing(sum string, size int64) ssh.Missing {
	return ssh.Missing{File: ssh.File{Path: "/" + sum, SHA256: sum, Size: size}}
}

// sharing returns copies with n machines w1, w2 … that take part in the transfers.
func sharing(n int) *copies {
	c := newCopies(first)
	for i := range n {
		c.join(fmt.Sprintf("w%d", i+1), peer.Ready{})
	}
	return c
}

// mustNext returns the next transfer, and fails the test if the machine has to wait.
func mustNext(t *testing.T, c *copies, name string, wants ...ssh.Missing) transfer {
	t.Helper()
	got, ok, _ := c.next(name, wants)
	require.True(t, ok, "%s has to wait", name)
	return got
}

func TestTheFirstCopiesAreOfDifferentFiles(t *testing.T) {
	c := sharing(4)
	wants := []ssh.Missing{missing("small", 1), missing("big", 9), missing("middle", 5)}
	var got []string
	for i := range 3 {
		got = append(got, mustNext(t, c, fmt.Sprintf("w%d", i+1), wants...).file.SHA256)
	}
	assert.Equal(t, []string{"big", "middle", "small"}, got)
	assert.Equal(t, "big", mustNext(t, c, "w4", wants...).file.SHA256, "then second ones")
}

func TestPaictlSendsAtMostThreeCopiesAndAFewAtATime(t *testing.T) {
	c := sharing(6)
	f := missing("a", 1)
	var own []transfer
	for i := range ownCopies {
		own = append(own, mustNext(t, c, fmt.Sprintf("w%d", i+1), f))
	}
	_, ok, wait := c.next("w4", []ssh.Missing{f})
	require.False(t, ok)
	c.sent("w1", own[0], true, true)
	<-wait
	got := mustNext(t, c, "w4", f)
	require.NotNil(t, got.from)
	assert.Equal(t, "w1", got.from.name)

	// A failed transfer doesn't count as a copy.
	c.sent("w2", own[1], false, false)
	assert.Equal(t, "w1", mustNext(t, c, "w5", f).from.name, "a machine sends two at a time")
	assert.Nil(t, mustNext(t, c, "w6", f).from)

	busy := sharing(6)
	for i := range sendsAtOnce {
		mustNext(t, busy, fmt.Sprintf("w%d", i+1), missing(fmt.Sprint(i), 1))
	}
	_, ok, _ = busy.next("w6", []ssh.Missing{missing("another", 1)})
	assert.False(t, ok)
}

func TestASendingThatIsTooSlowNoLongerCounts(t *testing.T) {
	c := sharing(7)
	f, g := missing("a", 1), missing("b", 1)
	var own []transfer
	for i := range ownCopies {
		own = append(own, mustNext(t, c, fmt.Sprintf("w%d", i+1), f))
	}
	_, ok, _ := c.next("w4", []ssh.Missing{f})
	require.False(t, ok, "three copies of it are on their way")
	clock := time.Unix(1e9, 0)
	release := func(name string, own transfer) bool { return c.look(name, own, true, false, clock, 5*time.Second) }
	require.False(t, release("w1", own[0]), "the way out of here may be what is slow")
	c.prove(clock)
	clock = clock.Add(6 * time.Second)
	require.False(t, release("w1", own[0]), "it may be slow by now")
	require.False(t, c.look("w2", own[1], false, true, clock, 5*time.Second), "it is fast")
	_, _, wait := c.next("w4", []ssh.Missing{f})
	require.True(t, release("w1", own[0]))
	require.False(t, release("w1", own[0]), "once")
	select {
	case <-wait:
	default:
		t.Fatal("who waits isn't woken")
	}
	instead := mustNext(t, c, "w4", f)
	assert.Nil(t, instead.from)
	assert.Equal(t, 3, c.sending)

	_, ok, _ = c.next("w1", []ssh.Missing{g})
	assert.False(t, ok, "it still gets something")
	c.sent("w4", instead, true, true)
	c.sent("w1", own[0], true, true)
	assert.Equal(t, 2, c.sending)
	assert.Equal(t, 4, c.file("a").sent, "it came in the end")
	assert.False(t, release("w1", own[0]), "it is over")
	other := mustNext(t, c, "w5", g)
	_, ok, _ = c.next("w1", []ssh.Missing{g})
	assert.False(t, ok, "a slow machine waits until another one has the file")
	c.sent("w5", other, false, false)
	assert.Nil(t, mustNext(t, c, "w1", g).from, "unless no one else has it or gets it")
}

func TestASlowSendingThatFailsIsNoCopy(t *testing.T) {
	c := sharing(2)
	clock := time.Unix(1e9, 0)
	c.prove(clock)
	f := missing("a", 1)
	own := mustNext(t, c, "w1", f)
	require.True(t, c.look("w1", own, true, false, clock, time.Second))
	c.sent("w1", own, false, false)
	assert.Zero(t, c.sending)
	assert.Zero(t, c.file("a").sent)
	assert.Zero(t, c.file("a").sending)
}

func TestAMachineIsNoProofForItself(t *testing.T) {
	c, clock := sharing(2), time.Unix(1e9, 0)
	own := mustNext(t, c, "w1", missing("a", 1))
	require.False(t, c.look("w1", own, false, true, clock, time.Minute))
	assert.False(t, c.look("w1", own, true, false, clock.Add(time.Second), time.Minute))
}

func TestTheRarestFileIsFetchedFirst(t *testing.T) {
	c := sharing(4)
	rare, frequent := missing("rare", 1), missing("frequent", 9)
	holds(c, frequent, "w1", "w2")
	holds(c, rare, "w3")
	assert.Equal(t, "rare", mustNext(t, c, "w4", frequent, rare).file.SHA256)
}

func holds(c *copies, f ssh.Missing, names ...string) {
	for _, n := range names {
		c.hold(n, c.file(f.SHA256))
	}
	c.file(f.SHA256).sent = ownCopies
}

func TestWhatNoOtherMachineCanGiveComesFromHere(t *testing.T) {
	f := missing("a", 1)
	c := sharing(4)
	holds(c, f, "w1", "w2", "w3")
	got := mustNext(t, c, "w4", f)
	require.Equal(t, "w1", got.from.name)
	for _, n := range []string{"w1", "w2", "w3"} {
		c.leave(n)
	}
	_, ok, _ := c.next("w4", []ssh.Missing{f})
	assert.False(t, ok, "the transfer that is on the way makes another one that has it")
	assert.Equal(t, goOn, c.fetched("w4", got, peer.Broken, false), "it had gone, which is no one's fault")
	assert.Nil(t, mustNext(t, c, "w4", f).from)
}

func TestAMachineIsNotAskedAgainWhereItGaveNothing(t *testing.T) {
	f := missing("a", 1)
	c := sharing(3)
	holds(c, f, "w1", "w2")
	got := mustNext(t, c, "w3", f)
	require.Equal(t, "w1", got.from.name)
	assert.Equal(t, goOn, c.fetched("w3", got, peer.Slow, false))
	got = mustNext(t, c, "w3", f)
	assert.Equal(t, "w2", got.from.name)
	c.fetched("w3", got, peer.Mixed, false)
	assert.Equal(t, "w2", mustNext(t, c, "w3", f).from.name, "whose fault it was can't be told")
}

func TestAMachineThatGivesWrongContentIsDroppedOnTheWordOfTwo(t *testing.T) {
	f := missing("a", 1)
	c := sharing(5)
	holds(c, f, "w1", "w2")
	one, two := mustNext(t, c, "w3", f), mustNext(t, c, "w4", f)
	if two.from.name != "w1" {
		two = transfer{f, one.from}
		one.from.busy++
	}
	assert.Equal(t, goOn, c.fetched("w3", one, peer.Wrong, false), "it may be the one that lies")
	assert.Equal(t, dropped, c.fetched("w4", two, peer.Wrong, false))
	got := mustNext(t, c, "w5", f)
	assert.Equal(t, "w2", got.from.name)
}

func TestAMachineThatReachesNoOtherGetsItsFilesFromHere(t *testing.T) {
	f := missing("a", 1)
	c := sharing(5)
	holds(c, f, "w1", "w2", "w3")
	good := mustNext(t, c, "w4", f)
	c.fetched("w4", good, "", true)
	var v verdict
	for range enoughFailures {
		v = c.fetched("w5", mustNext(t, c, "w5", f), peer.Unreachable, false)
	}
	assert.Equal(t, apart, v)
	assert.True(t, c.alone("w5"))
	_, ok, wait := c.next("w5", []ssh.Missing{f})
	assert.False(t, ok)
	assert.Nil(t, wait, "it has nothing to wait for")
	assert.False(t, c.alone("w4"))
}

func TestAFirewallBetweenAllMachinesIsFoundOutByThree(t *testing.T) {
	f := missing("a", 1)
	c := sharing(8)
	holds(c, f, "w1", "w2", "w3")
	var ts []transfer
	for i := range enoughFailures {
		ts = append(ts, mustNext(t, c, fmt.Sprintf("w%d", i+4), f))
	}
	var vs []verdict
	for i, tr := range ts {
		vs = append(vs, c.fetched(fmt.Sprintf("w%d", i+4), tr, peer.Unreachable, false))
	}
	assert.Equal(t, []verdict{goOn, goOn, offAll}, vs)
	assert.True(t, c.alone("w8"))
}

func TestAMachineWhosePortIsClosedIsNotTakenForAFirewallBetweenAll(t *testing.T) {
	f := missing("a", 1)
	c := sharing(8)
	holds(c, f, "w1")
	var v verdict
	for i := range enoughFailures {
		name := fmt.Sprintf("w%d", i+4)
		v = c.fetched(name, mustNext(t, c, name, f), peer.Unreachable, false)
	}
	assert.Equal(t, goOn, v, "it is left out, and no one is told before another reason is ruled out")
	assert.False(t, c.alone("w8"))
	assert.Nil(t, mustNext(t, c, "w8", f).from)
}

func TestWhoTakesNoPartGetsEverythingFromHere(t *testing.T) {
	assert.True(t, sharing(1).alone("w2"))
}

// simulate transfers files to machines in rounds of one transfer, and counts the copies of each file that paictl sends. A machine in bad sends no
// file or wrong content.
func simulate(t *testing.T, machines, count int, bad map[string]peer.Failure) (own map[string]int, rounds int) {
	t.Helper()
	c := sharing(machines)
	own = map[string]int{}
	wants := map[string][]ssh.Missing{}
	var names []string
	for i := range machines {
		name := fmt.Sprintf("w%d", i+1)
		names = append(names, name)
		for j := range count {
			wants[name] = append(wants[name], missing(fmt.Sprintf("file-%d", j), int64(j+1)))
		}
	}
	type moving struct {
		to string
		t  transfer
	}
	for len(wants) > 0 {
		rounds++
		require.Less(t, rounds, 100*count, "it never ends")
		var now []moving
		for _, name := range names {
			for range getsAtOnce {
				tr, ok, _ := c.next(name, wants[name])
				if !ok {
					break
				}
				wants[name] = slices.DeleteFunc(wants[name], func(f ssh.Missing) bool { return f.SHA256 == tr.file.SHA256 })
				now = append(now, moving{name, tr})
			}
			if c.alone(name) {
				for _, f := range wants[name] {
					own[f.SHA256]++
				}
				delete(wants, name)
			}
		}
		for _, m := range now {
			switch {
			case m.t.from == nil:
				own[m.t.file.SHA256]++
				c.sent(m.to, m.t, true, true)
			case bad[m.t.from.name] != "":
				c.fetched(m.to, m.t, bad[m.t.from.name], false)
				if _, on := wants[m.to]; on {
					wants[m.to] = append(wants[m.to], m.t.file)
				} else {
					own[m.t.file.SHA256]++
				}
			default:
				c.fetched(m.to, m.t, "", true)
			}
			if len(wants[m.to]) == 0 {
				delete(wants, m.to)
			}
		}
	}
	return own, rounds
}

func TestAllMachinesGetAllFilesInFewRounds(t *testing.T) {
	own, rounds := simulate(t, 200, 20, nil)
	for sum, n := range own {
		assert.LessOrEqual(t, n, ownCopies, sum)
	}
	assert.Less(t, rounds, 45, "20 files, two at a time, and the time until all have spread")
}

func TestBadMachinesKeepNoOneWaiting(t *testing.T) {
	for _, failure := range []peer.Failure{peer.Slow, peer.Wrong, peer.Broken, peer.Unreachable, peer.Refused} {
		t.Run(string(failure), func(t *testing.T) {
			bad := map[string]peer.Failure{}
			for i := range 10 {
				bad[fmt.Sprintf("w%d", i+1)] = failure // the first ones, which get the first copies
			}
			own, rounds := simulate(t, 60, 10, bad)
			total := 0
			for _, n := range own {
				total += n
			}
			assert.Less(t, rounds, 60)
			if failure == peer.Unreachable {
				return // three machines that reach no other machine look like a firewall
			}
			assert.Less(t, total, 60*10/2, "%v", own)
		})
	}
}

func TestWordsOfAMachineAreReadLineByLine(t *testing.T) {
	var got int64
	w := &words{got: func(n int64) { got += n }}
	for _, part := range []string{`{"got":`, "5}\n{\"got\":7}\n", `{"got":9,"done":true,"shared":true}` + "\n"} {
		_, err := w.Write([]byte(part))
		require.NoError(t, err)
	}
	assert.Equal(t, int64(9), got)
	assert.Equal(t, peer.Message{Got: 9, Done: true, Shared: true}, w.last)
	_, err := w.Write([]byte("Segmentation fault\n"))
	require.ErrorContains(t, err, `unexpected answer "Segmentation fault"`)
	_, err = (&words{}).Write([]byte(strings.Repeat("x", longestWord+1)))
	assert.Error(t, err)
}

func TestOneThatSaysTheSameThingAgainGetsItsFilesFromHere(t *testing.T) {
	c := sharing(3)
	f := missing("a", 1)
	own := mustNext(t, c, "w1", f)
	_, ok, _ := c.next("w1", []ssh.Missing{missing("b", 1)})
	assert.False(t, ok, "one at a time from here, so that a slow one doesn't hold up others")
	c.sent("w1", own, true, true)
	assert.Equal(t, goOn, c.fetched("w2", mustNext(t, c, "w2", f), peer.Mixed, false))
	assert.Equal(t, apart, c.fetched("w2", mustNext(t, c, "w2", f), peer.Mixed, false), "it can't be so twice")
	assert.True(t, c.alone("w2"))
	assert.False(t, c.alone("w1"))
}
