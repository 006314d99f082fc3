# erlang-base
$ON erl -noshell -eval 'P=[spawn_monitor(fun()->L=[lists:seq(1,N rem 500)||N<-lists:seq(1,5000)],exit(length(L)) end)||_<-lists:seq(1,50)], [receive {_,R,_,_,X}->io:format("~p~n",[X]) end||{_,R}<-P], E=ets:new(a,[]), [ets:insert(E,{I,binary:copy(<<"x">>,I rem 3000)})||I<-lists:seq(1,20000)], io:format("~p~n",[ets:info(E,size)]), halt(0).'
