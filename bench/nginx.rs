//! The floor: nginx serving the same bytes, and passing the same POST on.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A running nginx. It is stopped when this is dropped.
pub(crate) struct Nginx {
    child: Child,
    pub(crate) address: String,
}

impl Nginx {
    /// Serves the files of a folder, and passes POSTs on to `upstream`; nothing where there is no nginx.
    pub(crate) fn start(folder: &Path, upstream: &str) -> Option<Self> {
        let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/local/bin/nginx", "/opt/homebrew/bin/nginx"];
        let program = program.into_iter().map(PathBuf::from).find(|path| path.is_file())?;
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let upstream = upstream.trim_start_matches("http://");
        let place = folder.display();
        let configuration = format!(
            "user {user};\nworker_processes 2;\ndaemon off;\npid {place}/nginx.pid;\nerror_log {place}/nginx.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{\n  access_log off;\n  sendfile on;\n  tcp_nopush on;\n  tcp_nodelay on;\n  keepalive_requests 100000000;\n\
             open_file_cache max=100;\n  default_type application/json;\n  client_body_temp_path {place}/body;\n  \
             proxy_temp_path {place}/proxy;\n  fastcgi_temp_path {place}/fastcgi;\n  uwsgi_temp_path {place}/uwsgi;\n  \
             scgi_temp_path {place}/scgi;\n  upstream webhook {{ server {upstream}; keepalive 256; }}\n  server {{\n    \
             listen {address};\n    root {place};\n    location /proxied {{\n      proxy_pass http://webhook/;\n      \
             proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n    }}\n  }}\n}}\n",
            user = nix::unistd::User::from_uid(nix::unistd::Uid::effective()).ok()??.name,
        );
        let path = folder.join("nginx.conf");
        fs::write(&path, configuration).unwrap();
        let mut command = Command::new(program);
        command.arg("-p").arg(folder).arg("-c").arg(&path).stdin(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let nginx = Self { child, address };
        let began = std::time::Instant::now();
        while std::net::TcpStream::connect(&nginx.address).is_err() {
            assert!(began.elapsed().as_secs() < 10, "nginx does not start");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Some(nginx)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.child.id().try_into().unwrap()), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}
