package emulator

import (
	"bufio"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
)

func TestConfig(t *testing.T) {
	client := dynamodb.NewFromConfig(Config(t))
	if _, err := client.ListTables(t.Context(), nil); err != nil {
		t.Errorf("ListTables: %v", err)
	}
}

func TestConfigWithOtherEndpoint(t *testing.T) {
	if testing.Short() {
		t.Skip("Config skips")
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	if cfg := Config(t); cfg.BaseEndpoint == nil || *cfg.BaseEndpoint != "http://127.0.0.1:1" {
		t.Errorf("BaseEndpoint = %v, want that of AWS_ENDPOINT_URL", cfg.BaseEndpoint)
	}
}

func TestEnforceIAM(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the emulator")
	}
	emulator, err := Start(t.Context(), Options{EnforceIAM: true, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	defer emulator.Close()
	listTables := func(key string) error {
		_, err := dynamodb.NewFromConfig(aws.Config{
			Region:       "us-east-1",
			Credentials:  credentials.NewStaticCredentialsProvider(key, "test", ""),
			BaseEndpoint: aws.String(emulator.URL),
			Logger:       logging.Nop{}, // the refusal lacks a checksum, which the SDK remarks
		}).ListTables(t.Context(), nil)
		return err
	}
	if err := listTables("test"); err != nil {
		t.Errorf("ListTables with the operator's key: %v", err)
	}
	if _, denied := errors.AsType[smithy.APIError](listTables("AKIAIOSFODNN7EXAMPLE")); !denied {
		t.Error("ListTables with an unknown key is not denied")
	}
}

func TestClose(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the emulator")
	}
	emulator, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	emulator.Close()
	emulator.Close()
	awaitRefused(t, emulator.URL)
	select {
	case <-emulator.Ended():
	default:
		t.Error("Ended is open after Close")
	}
	if _, err := os.Stat(emulator.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind: %v", emulator.dir, err)
	}
}

func TestStartOnTakenPort(t *testing.T) {
	if testing.Short() {
		t.Skip("installs the emulator")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = Start(t.Context(), Options{Port: taken.Addr().(*net.TCPAddr).Port})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("Start on a taken port: %v, want %v", err, syscall.EADDRINUSE)
	}
}

// A process that is killed has no chance to call Close.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the emulator")
	}
	if os.Getenv("START_AND_HANG") != "" {
		startAndHang(t)
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGQUIT} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
			cmd.Env = append(os.Environ(), "START_AND_HANG=1")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatalf("read the emulator's address: %v", err)
			}
			_ = cmd.Process.Signal(signal)
			_ = cmd.Wait()
			awaitRefused(t, strings.TrimSpace(line))
		})
	}
}

func startAndHang(t *testing.T) {
	emulator, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString(emulator.URL + "\n")
	select {}
}

func awaitRefused(t *testing.T, address string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", u.Host)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Errorf("%s still answers", address)
}
