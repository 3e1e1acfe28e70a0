package apivip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// The operations of ARP packets (RFC 826).
const (
	arpRequest = 1
	arpReply   = 2
)

type packet struct {
	op                   uint16
	senderMAC, targetMAC net.HardwareAddr
	sender, target       netip.Addr
}

const packetLength = 28

func (p packet) encode() []byte {
	out := make([]byte, packetLength)
	binary.BigEndian.PutUint16(out[0:], 1)             // Ethernet
	binary.BigEndian.PutUint16(out[2:], unix.ETH_P_IP) // IPv4
	out[4], out[5] = 6, 4                              // the lengths of their addresses
	binary.BigEndian.PutUint16(out[6:], p.op)
	copy(out[8:14], p.senderMAC)
	copy(out[14:18], p.sender.AsSlice())
	copy(out[18:24], p.targetMAC)
	copy(out[24:28], p.target.AsSlice())
	return out
}

func decode(b []byte) (packet, bool) {
	if len(b) < packetLength || binary.BigEndian.Uint16(b[0:]) != 1 || binary.BigEndian.Uint16(b[2:]) != unix.ETH_P_IP || b[4] != 6 || b[5] != 4 {
		return packet{}, false
	}
	p := packet{op: binary.BigEndian.Uint16(b[6:]), senderMAC: append(net.HardwareAddr{}, b[8:14]...), targetMAC: append(net.HardwareAddr{}, b[18:24]...)}
	p.sender, _ = netip.AddrFromSlice(b[14:18])
	p.target, _ = netip.AddrFromSlice(b[24:28])
	return p, true
}

type arpSocket struct {
	fd        int
	broadcast *unix.SockaddrLinklayer
}

func openARP(index int) (*arpSocket, error) {
	protocol := htons(unix.ETH_P_ARP)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(protocol))
	if err != nil {
		return nil, fmt.Errorf("open a socket for ARP: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: index}); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("open a socket for ARP: %w", err)
	}
	to := &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: index, Halen: 6}
	for i := range 6 {
		to.Addr[i] = 0xff
	}
	return &arpSocket{fd: fd, broadcast: to}, nil
}

func (s *arpSocket) close() { _ = unix.Close(s.fd) }

func (s *arpSocket) send(p packet) error {
	if err := unix.Sendto(s.fd, p.encode(), 0, s.broadcast); err != nil {
		return fmt.Errorf("send ARP: %w", err)
	}
	return nil
}

// receive waits for the next packet. It returns false if no valid packet arrives in time.
func (s *arpSocket) receive(wait time.Duration) (p packet, ok bool, err error) {
	poll := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, max(1, int(wait/time.Millisecond)))
	switch {
	case errors.Is(err, unix.EINTR), err == nil && n == 0:
		return packet{}, false, nil
	case err != nil:
		return packet{}, false, fmt.Errorf("receive ARP: %w", err)
	}
	b := make([]byte, 256)
	k, _, err := unix.Recvfrom(s.fd, b, 0)
	if errors.Is(err, unix.EAGAIN) {
		return packet{}, false, nil
	}
	if err != nil {
		return packet{}, false, fmt.Errorf("receive ARP: %w", err)
	}
	p, ok = decode(b[:k])
	return p, ok, nil
}

func htons(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}
